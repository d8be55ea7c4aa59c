"""One child of the sandbox as its parent sees it: started, asked, watched, killed."""

import os
import resource
import secrets
import select
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from config.errors import ExtractionError
from config.frames import FrameBuffer, pack_frame
from config.scratch import make_scratch
from ingestion.extract import outbox, replies
from ingestion.extract.base import MEBIBYTE, PROGRAM, WITHOUT_LANGUAGES, Limits

PROJECT = Path(__file__).resolve().parents[2]
# All that a child sees of the environment: no database, no broker, no key.
PASSED_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TESSDATA_PREFIX")
FIXED_VARIABLES = {
    "PYTHONPATH": str(PROJECT), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1",
    "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # One arena: freed memory goes back, so that a big document does not retire the child.
    "MALLOC_ARENA_MAX": "1",
}  # fmt: skip
CHILD_MODULE = "ingestion.extract.child"
POLL_SECONDS = 0.05
START_SECONDS = 60.0
GRACE_SECONDS = 1.0
WRITE_SECONDS = 10.0
CPU_GRACE_SECONDS = 2
READ_BYTES = 1024 * 1024
OPEN_FILES = 128
# The watch kills at the limit of resident memory; this bounds what is asked for between two of its looks.
DATA_FACTOR = 2


class Child:
    """Not for two threads at once. A child that is not `alive` any more is to be closed."""

    def __init__(self, *, readable: Sequence[Path], languages: bool, programs: Sequence[Path] = ()) -> None:
        self.jobs = 0
        self.owner: Hashable = None  # whose files it reads, once it has read one
        self.rss_mb = self.peak_rss_mb = 0.0
        self._inbox = make_scratch()
        self._outbox = self._inbox / outbox.FOLDER
        self._outbox.mkdir()
        self._output_bytes = self._output_files = 0
        self._programs = bool(programs)
        options = [*([] if languages else [WITHOUT_LANGUAGES]), *(f"{PROGRAM}{path}" for path in programs)]
        environment = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ} | FIXED_VARIABLES
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", CHILD_MODULE, *options, str(self._inbox), *map(str, readable)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=self._inbox,
            start_new_session=True,
        )
        self._watched = psutil.Process(self._process.pid)
        self._output = self._process.stdout.fileno()  # type: ignore[union-attr]
        self._input = self._process.stdin.fileno()  # type: ignore[union-attr]
        os.set_blocking(self._input, False)
        _limit(self.pid, {"CORE": 0, "NOFILE": OPEN_FILES})
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._buffer = FrameBuffer()
        self._checked = 0.0  # when its memory and its outbox were looked at
        self.state = ""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_silent(self) -> bool:
        """Whether it waits. One that speaks unasked was taken over, or has just died."""
        return not self._buffer and not self._selector.select(0)

    def wait_ready(self) -> None:
        self.state = self._read(name="The extraction process", limits=Limits(), seconds=START_SECONDS)["state"]

    def run_many(self, requests: Sequence[dict[str, Any]], *, seconds: float | None) -> list[dict[str, Any] | ExtractionError]:
        """Results in the order of the requests: of all, of those that were begun within `seconds`, or up to the one that killed the child.

        The files are put where this child, and no other, may read them; what it wrote is taken from where it, and no other, may write."""
        inside = [self._inbox / str(self.jobs + number) for number in range(1, len(requests) + 1)]
        written = [self._outbox / path.name for path in inside]
        self.jobs += len(requests)
        results: list[dict[str, Any] | ExtractionError] = []
        limits_of = [Limits(**request.get("limits") or {}) for request in requests]
        # It may be ahead of us, so what it has written for the next counts too.
        self._output_bytes = sum(limits.max_output_bytes for limits in limits_of)
        self._output_files = outbox.MOST_FILES * len(requests)
        try:
            self._limit(limits_of)
            lent = [_lend(request, path, folder) for request, path, folder in zip(requests, inside, written, strict=True)]
            self._write(pack_frame({"requests": lent, "seconds": seconds}), name=_name(requests[0]))
            for request, sent, limits, folder in zip(requests, lent, limits_of, written, strict=True):
                reply = self._read(name=_name(request), limits=limits, seconds=limits.max_seconds + GRACE_SECONDS)
                is_over = bool(results) and seconds is not None and replies.OVER in reply
                self._check_reply(reply, sent, limits, is_over=is_over, is_last=is_over or sent is lent[-1])
                if is_over:
                    break
                results.append(_result(reply, request, limits, folder))
                outbox.clear(folder)
            self._check_memory()
        except ExtractionError as error:
            results.append(error)
        except BaseException:
            self.close()  # what it still answers would be taken for the answer to something else
            raise
        finally:
            for request, path, folder in zip(requests, inside, written, strict=True):
                for each in _places(request, path):
                    each.unlink(missing_ok=True)
                outbox.clear(folder)
        return results

    def close(self) -> None:
        if self.alive or self._programs:  # what it started lives on in its group, which none can leave
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        shutil.rmtree(self._inbox, ignore_errors=True)

    def _limit(self, limits_of: Sequence[Limits]) -> None:
        """From outside: the child's filter keeps it from lifting them. CPU seconds count since it began, so each batch moves that limit."""
        with suppress(psutil.Error):
            used = self._watched.cpu_times()
            seconds = used.user + used.system + sum(limits.max_seconds for limits in limits_of) + CPU_GRACE_SECONDS
            memory = DATA_FACTOR * max(limits.max_memory_mb for limits in limits_of) * MEBIBYTE
            output = max(limits.max_output_bytes for limits in limits_of)
            _limit(self.pid, {"CPU": int(seconds), "DATA": memory, "FSIZE": output})

    def _write(self, frame: bytes, *, name: str) -> None:
        """It waits for a frame whenever it is asked; one that was taken over may not, and shall not hold us."""
        rest, deadline = memoryview(frame), time.monotonic() + WRITE_SECONDS
        try:
            while rest:
                _, writable, _ = select.select([], [self._input], [], max(0.0, deadline - time.monotonic()))
                if not writable:
                    raise self._killed("crashed", name, Limits())
                rest = rest[os.write(self._input, rest) :]
        except OSError as error:
            raise self._died(name, Limits()) from error

    def _read(self, *, name: str, limits: Limits, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while (message := self._message(name, limits)) is None:
            now = time.monotonic()
            if now > deadline:
                raise self._killed("time_limit", name, limits)
            if now > self._checked + POLL_SECONDS:
                self._checked = now
                self._check_memory(name, limits)
                if outbox.is_overfull(self._outbox, most_bytes=self._output_bytes, most_files=self._output_files):
                    raise self._killed("output_limit", name, limits)
            if not self._selector.select(POLL_SECONDS):
                continue
            piece = os.read(self._output, READ_BYTES)
            if not piece:
                raise self._died(name, limits)
            self._buffer.add(piece)
        return message

    def _message(self, name: str, limits: Limits) -> dict[str, Any] | None:
        try:
            message = self._buffer.take()
            if message is not None and not isinstance(message, dict):
                raise ValueError("a message without fields")
            return message
        except (ValueError, RecursionError) as error:  # a child that was taken over may write anything
            raise self._killed("crashed", name, limits) from error

    def _check_reply(self, reply: Any, sent: dict[str, Any], limits: Limits, *, is_over: bool, is_last: bool) -> None:
        """After the last there is nothing more: what came besides would be the answer to the next file, which may be somebody else's."""
        try:
            replies.check_reply(reply, sent=sent, is_over=is_over)
        except ValueError as error:
            raise self._killed("crashed", _name(sent), limits) from error
        if is_last and self._said_more():
            raise self._killed("crashed", _name(sent), limits)

    def _said_more(self) -> bool:
        if self._selector.select(0):
            self._buffer.add(os.read(self._output, READ_BYTES))  # nothing at its end
        return bool(self._buffer)

    def _check_memory(self, name: str = "", limits: Limits | None = None) -> None:
        try:
            started = self._watched.children(recursive=True) if self._programs else []
            self.rss_mb = sum(process.memory_info().rss for process in (self._watched, *started)) / MEBIBYTE
        except psutil.Error:
            return  # it has just died: the pipe says so
        self.peak_rss_mb = max(self.peak_rss_mb, self.rss_mb)
        if limits is not None and self.rss_mb > limits.max_memory_mb:
            raise self._killed("memory_limit", name, limits)

    def _killed(self, reason: str, name: str, limits: Limits) -> ExtractionError:
        self.close()
        return ExtractionError(_sentence(reason, name, limits), reason=reason, retires=reason == "output_limit")

    def _died(self, name: str, limits: Limits) -> ExtractionError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        reason = "time_limit" if self._process.returncode == -signal.SIGXCPU else "crashed"
        return self._killed(reason, name, limits)


def _limit(pid: int, values: dict[str, int]) -> None:
    """Soft limits of another process, by the last part of their names; where a system cannot (macOS), its parent's watch remains."""
    if not hasattr(resource, "prlimit"):
        return
    for name, value in values.items():
        limit = getattr(resource, f"RLIMIT_{name}")
        with suppress(ValueError, OSError):
            resource.prlimit(pid, limit, (value, resource.prlimit(pid, limit)[1]))


def _name(request: dict[str, Any]) -> str:
    return str(request.get("name") or Path(request["path"]).name)


def _result(reply: dict[str, Any], request: dict[str, Any], limits: Limits, written: Path) -> dict[str, Any] | ExtractionError:
    name = _name(request)
    if error := reply.get("error"):
        message = error["message"] or _sentence(error["reason"], name, limits)
        return ExtractionError(message, reason=error["reason"], retires=error["retires"])
    if request.get("outbox"):
        try:
            outbox.deliver(written, to=Path(request["outbox"]), reply=reply, name=name, limits=limits)
        except ExtractionError as refused:
            return refused
    return reply


def _places(request: dict[str, Any], inside: Path) -> list[Path]:
    """Where the request's files are lent: the first of them, and any `more`."""
    return [inside, *(inside.with_name(f"{inside.name}-{place}") for place in range(len(request.get("more", ()))))]


def _lend(request: dict[str, Any], inside: Path, written: Path) -> dict[str, Any]:
    """The request in the child's own terms. A file is a hard link where the file system allows it, else a copy."""
    places = _places(request, inside)
    for path, place in zip([request["path"], *request.get("more", ())], places, strict=True):
        try:
            os.link(Path(path).resolve(), place)
        except OSError:
            shutil.copyfile(path, place)
    numbered = request | {"path": str(inside), replies.NUMBER: secrets.token_hex(8)}
    lent = numbered | ({"more": [str(place) for place in places[1:]]} if request.get("more") else {})
    if not request.get("outbox"):
        return lent
    written.mkdir()
    return lent | {"outbox": str(written)}


def _sentence(reason: str, name: str, limits: Limits) -> str:
    return {
        "time_limit": f"{name} took longer than {limits.max_seconds:g} seconds to read. Split it into smaller ones.",
        "memory_limit": f"{name} needed more than {limits.max_memory_mb} MB of memory to read. Split it into smaller ones.",
        "output_limit": outbox.output_sentence(name, limits),
        "crashed": f"{name} made the reading process crash. Save it again in the program it comes from.",
    }[reason]
