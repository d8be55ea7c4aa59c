"""The stack's own processes: started in process groups of their own, started again when they die, stopped in seconds."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import psutil

from config.embedded.console import Console
from config.roles import PROJECT, beat_command, web_command, worker_command

STABLE_SECONDS = 60.0
LONGEST_DELAY = 30.0
# Celery's warm shutdown waits for the task; SIGQUIT makes it leave at once. What was under way is a row with a lease and is taken up again.
ASK_SECONDS, URGE_SECONDS = 4.0, 3.0


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: Sequence[str]


def programs(*, host: str, port: int) -> list[Program]:
    """Everything that `up` starts besides the services."""
    return [
        Program("web", web_command(host=host, port=port)),
        Program("main", worker_command(name="main", queues="crawl,default", pool="prefork", concurrency=2)),
        Program("extract", worker_command(name="extract", queues="extract", pool="threads", concurrency=2)),
        Program("recognize", worker_command(name="recognize", queues="recognize", pool="solo", concurrency=1)),
        Program("embed", worker_command(name="embed", queues="embed", pool="solo", concurrency=1)),
        Program("beat", beat_command()),
    ]


def launch(command: Sequence[str], *, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A child in its own process group: a terminal's Ctrl-C reaches the supervisor alone, which then stops them in order."""
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=PROJECT,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        process_group=0,
    )


@dataclass(slots=True)
class _Child:
    program: Program
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    due: float = field(default=0.0)


class Children:
    def __init__(self, wanted: Sequence[Program], *, environment: Mapping[str, str], console: Console) -> None:
        self._children = [_Child(program) for program in wanted]
        self._environment = environment
        self._console = console

    def pids(self) -> dict[str, int]:
        return {child.program.name: child.process.pid for child in self._children if child.process is not None}

    def tend(self) -> bool:
        """Start what is due and note what died; True if a process id changed."""
        changed = False
        now = time.monotonic()
        for child in self._children:
            if child.process is not None and child.process.poll() is not None:
                self._note_death(child, now)
                changed = True
            if child.process is None and now >= child.due:
                child.process = launch(child.program.command, environment=self._environment)
                child.started = now
                self._console.follow(child.program.name, child.process)
                changed = True
        return changed

    def _note_death(self, child: _Child, now: float) -> None:
        assert child.process is not None
        child.failures = 1 if now - child.started > STABLE_SECONDS else child.failures + 1
        delay = min(LONGEST_DELAY, 2.0 ** (child.failures - 1))
        self._console.say(f"{child.program.name} {describe_exit(child.process.returncode)}; starting it again in {delay:.0f} s")
        _kill_group(child.process.pid)  # prefork children of a killed worker
        child.process, child.due = None, now + delay

    def stop(self, *, at_once: Callable[[], bool]) -> None:
        """Ask, urge, kill; `at_once` is asked between and skips to the last. Nothing that any of them started survives."""
        processes = [child.process for child in self._children if child.process is not None]
        descendants = _descendants(process.pid for process in processes)
        for number, seconds in ((signal.SIGTERM, ASK_SECONDS), (signal.SIGQUIT, URGE_SECONDS)):
            alive = [process for process in processes if process.poll() is None]
            if not alive or at_once():
                break
            for process in alive:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and not at_once() and any(process.poll() is None for process in alive):
                time.sleep(0.05)
        for process in processes:
            _kill_group(process.pid)
            process.wait()
        kill_all(descendants)


def describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    return f"was ended by {signal.Signals(-code).name}"


def _descendants(pids: Sequence[int]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            found += psutil.Process(pid).children(recursive=True)
    return found


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """Kill those that still run; psutil knows a process by its number and start, so a reused number is safe."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.is_running():
                process.kill()


def kill_tree(pid: int) -> None:
    """A process, its group and all it started."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        descendants = process.children(recursive=True)
        _kill_group(pid)
        kill_all([process, *descendants])
