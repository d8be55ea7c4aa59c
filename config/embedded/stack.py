"""What a running stack leaves on disk about itself, and what can be told from it."""

import contextlib
import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import psutil

from config.embedded.children import kill_tree
from config.embedded.services import running

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Stack:
    """A supervisor and its children (name -> process id and start time, which together name one process for good)."""

    pid: int
    url: str | None = None
    children: dict[str, tuple[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """Of a process and all it started, in MB. `rss_mb` counts shared pages once for each process; `pss_mb` shares them out."""

    name: str
    pid: int
    processes: int
    rss_mb: float
    pss_mb: float | None


def _state(home: Path) -> Path:
    return home / "stack.json"


def hold(path: Path, *, exclusive: bool) -> IO[str] | None:
    """An open file with a lock that ends with the process, or None if somebody holds one that forbids it."""
    file = open(path, "a")  # noqa: SIM115 - stays open for as long as the lock is wanted
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def is_held(path: Path) -> bool:
    """Whether somebody else holds the lock; a look takes it for an instant."""
    if not path.exists():
        return False
    taken = hold(path, exclusive=True)
    if taken is None:
        return True
    taken.close()
    return False


def claim_stack(home: Path) -> IO[str] | None:
    """The right to be this home's supervisor; None while another one lives. Somebody who only looks is waited for."""
    for _ in range(5):
        claim = hold(home / "stack.lock", exclusive=True)
        if claim is not None:
            return claim
        time.sleep(0.05)
    return None


def stack_lives(home: Path) -> bool:
    return is_held(home / "stack.lock")


def write_stack(home: Path, *, url: str | None, pids: dict[str, int]) -> None:
    children = {}
    for name, pid in pids.items():
        with contextlib.suppress(psutil.Error):
            children[name] = (pid, psutil.Process(pid).create_time())
    scratch = home / f".stack.{os.getpid()}"
    scratch.write_text(json.dumps(asdict(Stack(pid=os.getpid(), url=url, children=children))))
    scratch.replace(_state(home))


def read_stack(home: Path) -> Stack | None:
    try:
        return Stack(**json.loads(_state(home).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def clear_stack(home: Path) -> None:
    _state(home).unlink(missing_ok=True)


def end_leftovers(home: Path) -> list[str]:
    """Kill what a supervisor that died without a word left running. Call it with the claim held."""
    stack = read_stack(home)
    ended = []
    for name, (pid, created) in (stack.children if stack else {}).items():
        with contextlib.suppress(psutil.Error):
            if abs(psutil.Process(pid).create_time() - created) < 1:
                kill_tree(pid)
                ended.append(name)
    clear_stack(home)
    return ended


def memory_of(name: str, pid: int, *, recursive: bool = True) -> Memory | None:
    """None if the process is gone. Where the system does not tell the share-adjusted figure, or not to us, it is None."""
    try:
        process = psutil.Process(pid)
        members = [process, *(process.children(recursive=True) if recursive else [])]
    except psutil.Error:
        return None
    rss, pss, count = 0, 0, 0
    adjusted = True
    for member in members:
        with contextlib.suppress(psutil.Error):
            rss += member.memory_info().rss
            count += 1
            try:
                pss += member.memory_full_info().pss
            except (psutil.AccessDenied, AttributeError):
                adjusted = False
    return Memory(name, pid, count, rss / MEGABYTE, pss / MEGABYTE if adjusted else None)


def memory(home: Path) -> list[Memory]:
    """Every process of the stack and the services, in the order in which they are started."""
    stack, services = (read_stack(home) if stack_lives(home) else None), running(home)
    found = []
    if services is not None:
        found += [("postgres", services.postgres_pid, True), ("valkey", services.valkey_pid, True)]
    if stack is not None:
        found.append(("supervisor", stack.pid, False))
        found += [(name, pid, True) for name, (pid, _) in stack.children.items()]
    figures = [memory_of(name, pid, recursive=recursive) for name, pid, recursive in found if pid is not None]
    return [figure for figure in figures if figure is not None]


def listens(url: str) -> bool:
    """Whether the web process takes connections yet."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or 80), timeout=0.5).close()
    except OSError:
        return False
    return True


def _heading(home: Path, *, already: bool) -> str:
    stack = read_stack(home)
    if stack is None or not stack_lives(home):
        return "The services are running, the stack is not."
    ready = stack.url is not None and listens(stack.url)
    if already:
        state = f"running at {stack.url}" if ready else "starting"
        return f"Lectern is already {state}; `make stop` stops it."
    return f"Lectern is running: {stack.url}" if ready else "Lectern is starting"


def report(home: Path, *, already: bool = False) -> str:
    """A table of what runs: where it answers, and what each process costs. `already` answers somebody who wanted to start it."""
    figures = memory(home)
    if not figures:
        return f"Nothing is running ({home})."
    lines = [_heading(home, already=already), f"{'':12} {'pid':>8} {'processes':>9} {'RSS MB':>8} {'of its own':>10}"]
    for figure in figures:
        own = "" if figure.pss_mb is None else f"{figure.pss_mb:.0f}"
        lines.append(f"{figure.name:12} {figure.pid:>8} {figure.processes:>9} {figure.rss_mb:>8.0f} {own:>10}")
    total = sum(figure.pss_mb or figure.rss_mb for figure in figures)
    return "\n".join([*lines, f"{'together':12} {'':>8} {'':>9} {'':>8} {total:>10.0f}", f"Data and logs: {home}"])
