"""The whole stack on one machine: `python -m config.embedded.supervisor up [--detach] [--if-stopped] | stop | erase |
status [--json] | exec -- COMMAND…`.

DATABASE_URL and REDIS_URL, where set, are used and nothing is started in their place. Exit codes: 1 when what they name does not
answer, 3 when a stack runs already (0 with --if-stopped), 4 when the detached stack does not get ready, 130 after Ctrl-C while it
gets ready; `exec` passes on the code of its command.
"""

import argparse
import contextlib
import dataclasses
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from config.embedded import stack
from config.embedded.children import kill_tree
from config.embedded.failures import ServiceError
from config.embedded.foreground import child_environment, start_missing, up
from config.embedded.given import check_given
from config.embedded.homes import home as choose_home
from config.embedded.homes import prepare_home
from config.embedded.processes import log_tail
from config.embedded.services import running, stop_services
from config.roles import PROJECT

READY_SECONDS = 180.0  # without a word in the log of the stack
LONGEST_SECONDS = 1800.0  # a first start on a slow machine makes tables and reads models for many minutes
STOP_SECONDS = 30.0
INTERRUPTED = 130


def _answer(url: str) -> tuple[int, str]:
    """Status and text of /readyz; 0 while nothing answers."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        return response.status, response.read(4000).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, f"its web server does not answer yet ({error})"
    finally:
        connection.close()


class Patience:
    """How long a start is waited for: as long as the log goes on growing, within a bound."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._began = self._moved = time.monotonic()
        self._size = -1

    def is_left(self) -> bool:
        now = time.monotonic()
        size = self._log.stat().st_size if self._log.exists() else 0
        if size != self._size:
            self._size, self._moved = size, now
        return now - self._moved < READY_SECONDS and now - self._began < LONGEST_SECONDS


def up_detached(home: Path) -> int:
    """Start the stack in a session of its own and come back when it answers that it is ready; a stack that runs already is fine.

    Ctrl-C ends the waiting and not the stack: 130."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        return _start_and_wait(home, started)
    except KeyboardInterrupt:
        goes_on = "The stack goes on starting in the background; `make stop` stops it."
        print(f"\n{goes_on if started or stack.stack_lives(home) else 'Nothing was started.'}", file=sys.stderr)
        for process in started:
            process.returncode = 0  # it outlives us on purpose
        return INTERRUPTED


def _start_and_wait(home: Path, started: list[subprocess.Popen[bytes]]) -> int:
    prepare_home(home)
    # One starts, others that come meanwhile wait with it: two would empty each other's log.
    turn = stack.hold(home / "start.lock", exclusive=True)
    with turn or contextlib.nullcontext():
        return _in_turn(home, started, mine=turn is not None)


def _in_turn(home: Path, started: list[subprocess.Popen[bytes]], *, mine: bool) -> int:
    log = home / "log" / "stack.log"
    process = None
    if mine and not stack.stack_lives(home):
        check_given()
        print(f"Lectern is starting (log: {log})", flush=True)
        stack.clear_stack(home)
        with open(log, "wb") as output:
            command = [sys.executable, "-m", "config.embedded.supervisor", "up"]
            environment = {**os.environ, "LECTERN_HOME": str(home)}
            process = subprocess.Popen(
                command, cwd=PROJECT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
            started.append(process)
    patience = Patience(log)
    answer = "it did not start its web server"
    while patience.is_left() and (process is None or process.poll() is None):
        known = stack.read_stack(home)
        if known is not None and known.url:
            status, answer = _answer(known.url)
            if status == 200:
                print(f"Lectern is {'running' if process else 'running already'}: {known.url} (log: {log})")
                if process is not None:
                    process.returncode = 0  # it outlives us on purpose
                return 0
        if process is None and not stack.stack_lives(home) and (mine or not stack.is_held(home / "start.lock")):
            break
        time.sleep(0.25)
    ended = process is None or process.poll() is not None
    state = "ended" if ended else "is not ready"
    print(f"The stack {state}: {answer}\nThe end of {log}:\n{log_tail(log, characters=3000)}", file=sys.stderr)
    if process is not None and not ended:
        process.terminate()
        process.wait(STOP_SECONDS)
    return 4


def stop(home: Path) -> int:
    """Stop the supervisor, what a dead one left, and the services. Fine if nothing runs."""
    if not home.exists():
        print("Nothing is running.")
        return 0
    known = stack.read_stack(home)
    found = stack.stack_lives(home)
    if found and known is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(known.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while stack.stack_lives(home) and time.monotonic() < deadline:
            time.sleep(0.05)
        if stack.stack_lives(home):
            kill_tree(known.pid)
            time.sleep(0.2)
    with contextlib.closing(stack.claim_stack(home) or open(os.devnull)):
        found = bool(stack.end_leftovers(home)) or found
        found = bool(stop_services(home)) or found
    print("Stopped." if found else "Nothing is running.")
    return 0


def erase(home: Path) -> int:
    """Stop what runs and remove the home with the data in it; a folder without our credentials file is left alone."""
    stop(home)
    if (home / "credentials.json").exists():
        shutil.rmtree(home)
        print(f"Removed {home}")
    return 0


def _port_in_use(home: Path) -> int | None:
    """The port of the running stack, which may not be the one that was wished for."""
    known = stack.read_stack(home)
    return urlsplit(known.url).port if known and known.url and stack.stack_lives(home) else None


def execute(home: Path, command: Sequence[str]) -> int:
    """Run a command with the services; those that were started for it are stopped after the last one who uses them."""
    prepare_home(home)
    before = running(home)
    services = start_missing(home)
    use = stack.hold(home / "users.lock", exclusive=False)
    process = subprocess.Popen(list(command), env=child_environment(home, services, port=_port_in_use(home)))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: process.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command too, which decides
    code = process.wait()
    if use is not None:
        use.close()
    if before is None and services is not None and not stack.stack_lives(home):
        last = stack.hold(home / "users.lock", exclusive=True)
        if last is not None:
            with last:
                stop_services(home)
    return code if code >= 0 else 128 - code


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m config.embedded.supervisor", description=__doc__.partition("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    starting = actions.add_parser("up")
    starting.add_argument("--detach", action="store_true", help="in the background; come back when it is ready")
    starting.add_argument("--if-stopped", action="store_true", help="a stack that runs already is fine: exit code 0 instead of 3")
    actions.add_parser("stop")
    actions.add_parser("erase", help="stop, and remove the embedded services' data")
    actions.add_parser("status").add_argument("--json", action="store_true", help="memory figures as JSON lines")
    actions.add_parser("exec").add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args(argv)
    home = choose_home()
    if arguments.action == "up":
        code = up_detached(home) if arguments.detach else up(home)
        return 0 if code == 3 and arguments.if_stopped else code
    if arguments.action in ("stop", "erase"):
        return (stop if arguments.action == "stop" else erase)(home)
    if arguments.action == "exec":
        command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
        if not command:
            parser.error("exec needs a command, as in: exec -- python manage.py shell")
        return execute(home, command)
    if arguments.json:
        for figure in stack.memory(home):
            print(json.dumps(dataclasses.asdict(figure)))
    else:
        print(stack.report(home))
    return 0


def _run(argv: Sequence[str]) -> int | str:
    """What the process exits with, for every way in which a person or a pipe may end it."""
    code = 0
    try:
        code = main(argv)
        sys.stdout.flush()
    except ServiceError as error:
        return f"lectern: {error.message}"
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough, as `head` does; the interpreter must not complain about it while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1:]))
