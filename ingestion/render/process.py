"""One browser with its driver as the worker sees them: started, asked, watched, killed."""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import psutil

from config.frames import FrameBuffer, pack_frame
from config.scratch import make_scratch
from ingestion.render.base import MEBIBYTE, RenderFailed, RenderLimits
from ingestion.render.visit import Visit

PROJECT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0
GRACE_SECONDS = 1.0
POLL_SECONDS = 0.2
READ_BYTES = 1024 * 1024
MOST_FRAME_BYTES = 64 * MEBIBYTE
THREADS = 6


class Driver:
    """Not for two threads at once. After `visit` raised anything but render_failed, it is to be closed."""

    def __init__(self, executable: str, *, apart: bool) -> None:
        self.pages = 0
        self._looked_at = 0.0
        self.peak_memory_mb = 0.0
        self._lock = Lock()
        self._buffer = FrameBuffer(max_bytes=MOST_FRAME_BYTES)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="render-ask")
        self._scratch = make_scratch("render")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ingestion.render.child", executable, *(["--apart"] if apart else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(self._scratch),
            cwd=self._scratch,
            start_new_session=True,
        )
        self._watched = psutil.Process(self._process.pid)
        self.state = self.version = ""

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        said = self._read(
            time.monotonic() + START_SECONDS, RenderLimits(), late="The browser did not start in time.", late_reason="no_browser"
        )
        if "ready" not in said:
            self.close()
            raise RenderFailed("no_browser", f"Chromium cannot be started: {said.get('why', '')}")
        self.state, self.version = said["state"], said["version"]

    def visit(self, url: str, visit: Visit, *, user_agent: str, limits: RenderLimits) -> dict[str, Any]:
        """{url, html} or {error, why}."""
        self.pages += 1
        deadline = time.monotonic() + limits.max_seconds + GRACE_SECONDS
        order = {"render": url, "user_agent": user_agent, "seconds": limits.max_seconds, "idle": limits.idle_seconds}
        self._write(order)
        while True:
            late = f"The page was not made within {limits.max_seconds:g} seconds."
            said = self._read(deadline, limits, late=late)
            if "done" in said:
                return said["done"]
            if "ask" in said:
                self._pool.submit(self._answer, visit, said)
            else:
                visit.note_refused()
            if visit.is_flood:
                raise self._failed("render_limit", "The page asks without end for what it cannot have.")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        with suppress(psutil.Error):
            # In namespaces of their own all end with the first; elsewhere each is told.
            for process in [self._watched, *self._watched.children(recursive=True)]:
                with suppress(psutil.Error):
                    process.kill()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with self._lock:
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _answer(self, visit: Visit, wanted: dict[str, Any]) -> None:
        given = visit.answer(wanted)
        with suppress(RenderFailed):  # it has died meanwhile, and whoever waits for the page hears of it
            self._write(given)

    def _write(self, message: dict[str, Any]) -> None:
        with self._lock:
            try:
                self._process.stdin.write(pack_frame(message))  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]
            except (OSError, ValueError) as error:
                raise RenderFailed("render_failed", "The browser has died.") from error

    def _read(self, deadline: float, limits: RenderLimits, *, late: str, late_reason: str = "render_timeout") -> dict[str, Any]:
        if (message := self._buffer.take()) is not None:
            return message
        descriptor = self._process.stdout.fileno()  # type: ignore[union-attr]
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while True:
                self._check_memory(limits)
                if time.monotonic() > deadline:
                    raise self._failed(late_reason, late)
                if not selector.select(POLL_SECONDS):
                    continue
                piece = os.read(descriptor, READ_BYTES)
                if not piece:
                    raise self._failed("render_failed", "The browser has died.")
                try:
                    self._buffer.add(piece)
                    if (message := self._buffer.take()) is not None:
                        return message
                except ValueError as error:
                    raise self._failed("render_limit", "The page is too large.") from error

    def _check_memory(self, limits: RenderLimits) -> None:
        if time.monotonic() - self._looked_at < POLL_SECONDS:
            return
        self._looked_at = time.monotonic()
        used = self._memory_mb(limits.max_memory_mb)
        self.peak_memory_mb = max(self.peak_memory_mb, used)
        if used > limits.max_memory_mb:
            raise self._failed("render_limit", f"The page needed more than {limits.max_memory_mb:,} MB of memory.")

    def _memory_mb(self, suspect_above: int) -> float:
        """A page that several processes share counts once. That is slow to find out, so only what the plain sum suspects is asked."""
        with suppress(psutil.Error):
            tree = [self._watched, *self._watched.children(recursive=True)]
            total = sum(_resident(process) for process in tree) / MEBIBYTE
            return total if total <= suspect_above else sum(map(_share, tree)) / MEBIBYTE
        return 0.0

    def _failed(self, reason: str, message: str) -> RenderFailed:
        self.close()
        return RenderFailed(reason, message)


def _resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _share(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except (psutil.Error, AttributeError):
        return _resident(process)


def _environment(scratch: Path) -> dict[str, str]:
    """All that the browser sees of ours: no database, no broker, no key."""
    passed = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ") if name in os.environ}
    inside = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"), str(scratch))
    return passed | inside | {"PYTHONPATH": str(PROJECT), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
