"""A real fleet on loopback for journeys, soaks and benchmarks: web, workers and beat as processes that can be killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import psycopg

ROOT = Path(__file__).resolve().parent.parent
T = TypeVar("T")

ROLES: Mapping[str, tuple[str, ...]] = {
    "web": ("web", "--host", "127.0.0.1"),
    "main": ("worker", "--queues", "crawl,default", "--name", "main"),
    "extract": ("worker", "--queues", "extract", "--name", "extract"),
    "recognize": ("worker", "--queues", "recognize", "--name", "recognize"),
    "embed": ("worker", "--queues", "embed", "--name", "embed"),
    "beat": ("beat",),
}
# Short times, so that a kill is made good within seconds.
QUICK = {
    "LECTERN_SWEEP_SECONDS": "0.5", "LECTERN_SLICE_SECONDS": "2", "LECTERN_LEASE_SECONDS": "4", "LECTERN_DEAD_RUN_SECONDS": "60",
    "LECTERN_RECOGNIZE_SECONDS": "10",
}  # fmt: skip


def look_past_rules(environment: Mapping[str, str], **options: Any) -> psycopg.Connection:
    """A connection of the owner that serves everyone: row-level security holds the owner too."""
    return psycopg.connect(environment["DATABASE_OWNER_URL"], options="-c lectern.organization=*", **options)


@dataclass
class Fleet:
    """Processes of one installation. `environment` holds the URLs of its services; logs go to files in `logs`."""

    environment: Mapping[str, str]
    logs: Path
    port: int
    prefix: tuple[str, ...] = ()  # put before each command: another user, other limits
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: ROLES)
    processes: dict[str, subprocess.Popen] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *names: str) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        for name in names or self.roles:
            if self.is_alive(name):
                continue
            arguments = [*self.roles[name], *(["--port", str(self.port)] if name == "web" else [])]
            with open(self.logs / f"{name}.log", "ab") as log:
                self.processes[name] = subprocess.Popen(
                    [*self.prefix, sys.executable, "-m", "config.roles", *arguments],
                    cwd=ROOT,
                    env={**_inherited(), **self.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def is_alive(self, name: str) -> bool:
        return name in self.processes and self.processes[name].poll() is None

    def kill(self, name: str) -> None:
        """`kill -9` for the process and everything below it."""
        self._signal(name, signal.SIGKILL)

    def stop(self, *names: str) -> None:
        for name in names or list(self.processes):
            self._signal(name, signal.SIGTERM)
        deadline = time.monotonic() + 15
        for name in names or list(self.processes):
            process = self.processes[name]
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            self._signal(name, signal.SIGKILL)

    def _signal(self, name: str, number: int) -> None:
        process = self.processes.get(name)
        if process is None:
            return
        if number == signal.SIGTERM:
            if process.poll() is None:
                process.send_signal(number)
            return
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def note_memory(self) -> None:
        """Remember each process's largest memory, children included, in MB."""
        for name, process in self.processes.items():
            total = 0
            for member in _tree(process.pid):
                with contextlib.suppress(psutil.Error):
                    total += member.memory_info().rss
            self.peak_mb[name] = max(self.peak_mb.get(name, 0.0), total / 1e6)

    def cpu_seconds(self) -> dict[str, float]:
        """What each process has cost so far, children included."""
        return {name: cpu_seconds(process.pid) for name, process in self.processes.items()}

    def wait_ready(self, seconds: float = 90) -> None:
        def ready() -> bool:
            try:
                return httpx.get(f"{self.url}/readyz", timeout=5, trust_env=False).status_code == 200
            except httpx.HTTPError:
                return False

        wait_for(ready, seconds=seconds, what=f"the fleet at {self.url} (logs in {self.logs})")

    def tail(self, name: str, lines: int = 30) -> str:
        path = self.logs / f"{name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


def wait_for(look: Callable[[], T], *, seconds: float, what: str, every: float = 0.1) -> T:
    """The first truthy answer of `look`; AssertionError naming `what` when there is none in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(every)
    raise AssertionError(f"Waited {seconds:.0f} s in vain for {what}.")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of all below it, those that have ended included."""
    total = 0.0
    for member in _tree(pid):
        with contextlib.suppress(psutil.Error):
            total += sum(member.cpu_times()[:4])
    return total


def _tree(pid: int) -> list[psutil.Process]:
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _inherited() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "DJANGO_"))}
