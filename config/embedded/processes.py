"""Starting, recognising and stopping the servers' processes."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from config.embedded.failures import ServiceError
from config.embedded.homes import Account

LOG_BYTES = 10_000_000


def server_environment(programs: Path) -> dict[str, str]:
    """What a server sees: nothing of ours. LANG, LC_* and PG* of a caller would change how text sorts and folds, or where it connects."""
    locale = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    return {"PATH": f"{programs}:/usr/bin:/bin", "LC_ALL": locale, "TZ": "UTC"}


def identity(user: Account) -> dict[str, object]:
    """Arguments for subprocess that make the child run as that user; none where we are that user already."""
    if os.geteuid() == user.uid:
        return {}
    return {"user": user.uid, "group": user.gid, "extra_groups": []}


def spawn(command: Sequence[str], *, user: Account, log: Path) -> subprocess.Popen[bytes]:
    """Start a server that outlives us: its own session, working directory /, output to the log, no inherited descriptors."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    with open(log, "ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=server_environment(Path(command[0]).parent),
            start_new_session=True,
            **identity(user),  # type: ignore[call-overload]
        )


def run(command: Sequence[str], *, user: Account, doing: str) -> None:
    """Run a short program of a server to its end; its own words go into the error."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        cwd="/",
        env=server_environment(Path(command[0]).parent),
        timeout=180,
        **identity(user),  # type: ignore[call-overload]
    )
    if done.returncode:
        words = (done.stderr or done.stdout).strip()[-800:]
        raise ServiceError(f"{doing} failed ({Path(command[0]).name} exited with {done.returncode}): {words}")


def is_running(pid: int, program: str) -> bool:
    """Whether that process lives and is that program: after a reboot the number may be somebody else's."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.name().startswith(program)
    except psutil.Error:
        return False


def stop_process(pid: int, *, program: str, signals: Sequence[tuple[signal.Signals, float]]) -> None:
    """Send each signal in turn and wait for its seconds, until the process is gone; SIGKILL ends the list."""
    for number, seconds in [*signals, (signal.SIGKILL, 5.0)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):  # reap it if it is our own child
                os.waitpid(pid, os.WNOHANG)
            if not is_running(pid, program):
                return
            time.sleep(0.02)
        print(f"lectern: {program} ({pid}) did not stop within {seconds:.0f} s of {number.name}", file=sys.stderr)
    raise ServiceError(f"The process {pid} ({program}) does not stop. End it by hand and try again.")


def log_tail(log: Path, *, characters: int = 800) -> str:
    try:
        return log.read_text(errors="replace")[-characters:].strip()
    except OSError:
        return ""


def free_port(wanted: int | None = None) -> int:
    """The wanted port if nobody has it, else any free one. Somebody may take it before it is used: callers try again."""
    for port in (wanted, 0) if wanted else (0,):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise ServiceError("No free TCP port on 127.0.0.1.")
