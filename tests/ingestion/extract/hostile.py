"""A child of the sandbox whose extractor was taken over: it does what the file says. `python -m tests.ingestion.extract.hostile …`"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from config.frames import pack_frame
from ingestion.extract import child
from ingestion.extract.base import Extracted, ExtractedFile, Limits, Served
from ingestion.extract.formats import EXTRACTORS
from ingestion.extract.replies import NUMBER

F_SETSIG, F_SETOWN_EX = 10, 15


class HostileExtractor:
    """The file is a JSON list of [deed, arguments…]; the Markdown is a JSON list of what came of each: null or the error's name."""

    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None, outbox: Path | None = None) -> Extracted:
        results = []
        for deed, *arguments in json.loads(data.read_text()):
            try:
                results.append(DEEDS[deed](outbox, *arguments))
            except OSError as error:
                if deed == "write_honestly":
                    raise
                results.append(type(error).__name__ if error.errno is None else os.strerror(error.errno))
        files = [ExtractedFile(path, path, "text/plain", "attachment", {"n": 1}) for path in (sorted(os.listdir(outbox)) if outbox else [])]
        if name.startswith("liar"):
            files.append(ExtractedFile("more", "never-written", "text/plain", "attachment"))
        return Extracted(markdown=json.dumps(results), title=name, media_type="text/plain", files=files)


def _write(outbox: Path | None, name: str, size: int, count: int = 1) -> None:
    """`count` files, one mebibyte at a time. "/" in the name leads out of the outbox."""
    block = b"x" * min(size, 1 << 20)
    for number in range(count):
        with open((outbox or Path()) / (name if count == 1 else f"{name}-{number}"), "wb") as file:
            for _ in range(size // len(block) if size else 0):
                file.write(block)


def _raise_limits(outbox: Path | None) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError as error:  # Python's own reading of EPERM
        raise PermissionError(errno.EPERM, str(error)) from error


def _called(number: int, *arguments: object) -> None:
    """A system call by its number, past everything that Python or the C library would do."""
    ctypes.set_errno(0)
    if LIBC.syscall(ctypes.c_long(number), *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")


def _connect(outbox: Path | None, port: int) -> None:
    address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton("127.0.0.1"))
    made = LIBC.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    if made < 0 or LIBC.connect(made, address, len(address)) < 0:
        raise OSError(ctypes.get_errno(), "")


def _fork(outbox: Path | None) -> None:
    if not os.fork():
        os._exit(0)


def _thread(outbox: Path | None) -> None:
    thread = threading.Thread(target=sum, args=([1, 2],))
    thread.start()
    thread.join()


def _run(outbox: Path | None, *command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout


def _leave(outbox: Path | None, *command: str) -> None:
    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _allocate(outbox: Path | None, size: int) -> None:
    held = bytearray(size)
    held[::4096] = b"x" * len(held[::4096])


def _hang(outbox: Path | None) -> None:
    while True:
        pass


def _babble(outbox: Path | None, frame: str, seconds: float = 30) -> None:
    """Something else than a reply, on every pipe that is open."""
    for number in range(3, 20):
        with contextlib.suppress(OSError):
            os.write(number, bytes.fromhex(frame))
    time.sleep(seconds)


def _answer(outbox: Path | None, *messages: dict, late: float = 0.0) -> None:
    """Replies of its own making on every pipe, in one piece; the number "mine" is that of the request that is being read."""
    frame = sys._getframe()
    while frame.f_code is not child.answer.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    mine = frame.f_locals["request"][NUMBER]
    told = b"".join(pack_frame(message | ({NUMBER: mine} if message.get(NUMBER) == "mine" else {})) for message in messages)
    threading.Timer(late, _babble, (outbox, told.hex(), 0)).start() if late else _babble(outbox, told.hex(), 0)


def _link(outbox: Path | None, name: str) -> None:
    """The lent file, a hard link to somebody's stored bytes, under a name that may be written."""
    lent = outbox.parents[1] / outbox.name  # type: ignore[union-attr]
    os.link(lent, outbox / name)  # type: ignore[operator]


def _schedule(outbox: Path | None, what: str, pid: int) -> None:
    """Of the process `pid`; 0 is our own thread."""
    if what == "affinity":
        os.sched_setaffinity(pid, {0})
    elif what == "scheduler":
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.setpriority(os.PRIO_PROCESS, pid, 19)


def _signal_by_file(outbox: Path | None, pid: int, number: int) -> None:
    """Asks the kernel to signal another process when a pipe can be read, and makes it so."""
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reading, F_SETSIG, number)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"x")


LIBC = ctypes.CDLL(None, use_errno=True)
DEEDS: dict[str, Callable[..., object]] = {
    "read": lambda outbox, path: Path(path).read_bytes() and None,
    "write": _write,
    "write_honestly": _write,
    "raise_limits": _raise_limits,
    "symlink": lambda outbox, target: os.symlink(target, outbox / "link"),
    "call": lambda outbox, number, *arguments: _called(number, *map(ctypes.c_long, arguments)),
    "connect": _connect,
    "fork": _fork,
    "thread": _thread,
    "run": _run,
    "leave": _leave,
    "allocate": _allocate,
    "hang": _hang,
    "babble": _babble,
    "chmod": lambda outbox: os.chmod(outbox.parents[1] / outbox.name, 0),  # the stored bytes themselves, by their second name
    "kill_parent": lambda outbox: os.kill(os.getppid(), 0),
    "answer": _answer,
    "answer_late": lambda outbox, seconds, *messages: _answer(outbox, *messages, late=seconds),
    "schedule": _schedule,
    "signal_by_file": _signal_by_file,
    "own": lambda outbox, pid: fcntl.fcntl(0, F_SETOWN_EX, struct.pack("=ii", 1, pid)) and None,
    "abort": lambda outbox: os.abort(),
    "mkdir": lambda outbox: os.mkdir(outbox / "folder"),
    "link": _link,
}

if __name__ == "__main__":
    EXTRACTORS._loaded["text"] = HostileExtractor
    child.main(sys.argv[1:])
