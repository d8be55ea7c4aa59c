"""How a child closes itself in, and what of that this machine offers."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from config.errors import Unavailable
from ingestion.extract import landlock, seccomp

OPEN = "open: "
# What starts a program that was linked dynamically: the kernel asks for the right to run it too.
LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1")


def close_in(*, readable: Iterable[Path], listable: Iterable[Path], writable: Iterable[Path], programs: Sequence[Path] = ()) -> str:
    """For ever. Says what holds: "landlock ABI 7, seccomp", or "open: REASON" if any of it is missing; what there is holds all the same.
    Without `programs` the process starts no other; with some, these and no more."""
    executable = [*programs, *map(Path, LOADERS)] if programs else []
    files = landlock.restrict(readable=readable, listable=listable, writable=writable, executable=executable)
    calls = seccomp.restrict(programs=bool(programs), signals_are_scoped=landlock.interface()[0] >= landlock.SCOPES_SINCE)
    return _told(files, calls)


def offered() -> str:
    """The same of a child that would be started now."""
    abi, no_landlock = landlock.interface()
    no_seccomp = seccomp.missing()
    return _told(OPEN + no_landlock if no_landlock else f"landlock ABI {abi}", OPEN + no_seccomp if no_seccomp else "seccomp")


def is_closed(state: str) -> bool:
    return not state.startswith(OPEN)


def require_closed(state: str) -> None:
    """Raises `Unavailable`: files of strangers are read where the kernel holds who reads them, unless the operator says otherwise."""
    if not is_closed(state):
        raise Unavailable(
            f"Files are not read on this machine: {state.removeprefix(OPEN)}. Use Linux 5.13 or newer with Landlock and seccomp, and allow"
            " both to the container; or set LECTERN_SANDBOX=limits to read them in processes that only limits of time and memory hold."
        )


def _told(*states: str) -> str:
    lacking = [state.removeprefix(OPEN) for state in states if not is_closed(state)]
    return OPEN + "; ".join(lacking) if lacking else ", ".join(states)
