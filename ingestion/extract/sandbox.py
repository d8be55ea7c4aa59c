"""A warm pool of extraction children: `Sandbox(size=2).run({"op": "extract", …})`, from any thread."""

import threading
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from config.errors import ExtractionError, Unavailable
from config.scratch import clear_scratch
from ingestion.extract.enclosure import require_closed
from ingestion.extract.process import Child

# A start costs a second (the language model is unpacked); growing memory is watched at each file anyway.
FILES_PER_CHILD = 2000
RETIRED_ABOVE_MB = 300


class Sandbox:
    """Children start when they are first needed and are replaced after FILES_PER_CHILD files, when they grew, and when they died.

    A child that read files of one `owner` reads none of another's: whatever took it over with a file sees and forges nothing of theirs.

    Requests, both with `limits` (fields of Limits):
    {op: "extract", path, name, declared_type, page: fields of Served | None, chunk: {settings, tokenizer, reserve} | None, known, outbox}
    -> {extracted, passages}; `outbox` is a folder of yours that gets the files which come out of it (`extracted["files"]`), if wanted;
    `page` says that a web server gave the file, and HTML then comes back with its links. What has the content
    hash `known` (in hex) is not cut.
    {op: "chunk", path, title, chunk, detect} -> {passages, language}; `path` holds Markdown, its language is told with `detect`.
    {op: "recognize", …} as recognize.perform takes and answers it.
    {op: "query", path, more, sql, views, max_rows} -> {columns, rows, truncated}: ingestion.datasets.queries; `more` are further files.
    `tables` (fields of ingestion.datasets.wanted.Wanted) of an extraction with an outbox says that tables shall become datasets.
    `tokenizer` is a name that kb.providers.tokens knows; `readable` names folders outside of the Python prefix where one lies.
    Without `languages` a child has 90 MB less and says no language; among code pages that all fit it takes the likeliest by its bytes.

    What the kernel takes from a child is in enclosure.py; where it cannot, none starts (`Unavailable`), unless `limits_only`. A child with
    `programs` may run those, one after the other or together, which count as the child itself for memory and time.

    ExtractionError: reasons `time_limit`, `memory_limit`, `crashed` and `internal` say nothing about the content:
    retires is False."""

    def __init__(
        self,
        *,
        size: int = 1,
        readable: Sequence[Path] = (),
        programs: Sequence[Path] = (),
        languages: bool = True,
        limits_only: bool = False,
        retired_above_mb: float = RETIRED_ABOVE_MB,
    ) -> None:
        if size < 1:
            raise ValueError("A sandbox has at least one child.")
        self._size = size
        self._readable = tuple(readable)
        self._programs = tuple(programs)
        self._languages = languages
        self._limits_only = limits_only
        self._retired_above_mb = retired_above_mb
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._closed = False
        self._state = ""
        # Linux kills a child when the *thread* that started it ends, so one thread of ours starts them all.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="extract-starter")
        self.peak_rss_mb = 0.0
        clear_scratch()  # of processes that were killed before they could

    def warm(self) -> None:
        """Start every child now, so that the first files need not wait for them."""
        started: list[Child] = []
        try:
            for _ in range(self._size):
                self._free.acquire()
                try:
                    started.append(self._start())
                except BaseException:
                    self._free.release()  # or one job less would run at a time for as long as the process lives
                    raise
        finally:
            for child in started:
                self._put_back(child)
                self._free.release()

    def run(self, request: dict[str, Any], *, owner: Hashable = None) -> dict[str, Any]:
        (result,) = self.run_many([request], owner=owner)
        if isinstance(result, ExtractionError):
            raise result
        return result

    def run_many(
        self, requests: Sequence[dict[str, Any]], *, seconds: float | None = None, owner: Hashable = None
    ) -> list[dict[str, Any] | ExtractionError]:
        """Results in the order of the requests, an error in the place of one that failed: what a file does to the child hurts no other.

        With `seconds` no request but the first is begun later than that, so that there may be fewer results."""
        started = time.monotonic()
        results: list[dict[str, Any] | ExtractionError] = []
        with self._free:
            while waiting := requests[len(results) :]:
                left = None if seconds is None else started + seconds - time.monotonic()
                if results and left is not None and left <= 0:
                    break
                child = self._take(owner)
                try:
                    results += child.run_many(waiting, seconds=left)
                finally:
                    self.peak_rss_mb = max(self.peak_rss_mb, child.peak_rss_mb)
                    self._put_back(child)
        return results

    def sandbox_state(self) -> str:
        """How the children are closed in: "landlock ABI 7, seccomp", or "open: REASON" where the system lacks one of them."""
        if not self._state:
            with self._free:
                self._put_back(self._take(None))
        return self._state

    def pids(self) -> list[int]:
        """Of the children that wait for work."""
        with self._lock:
            return [child.pid for child in self._idle]

    def close(self) -> None:
        """Kills the waiting children; one that is at work is killed when its job ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()
        self._starter.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, owner: Hashable) -> Child:
        while True:
            with self._lock:
                if self._closed:
                    raise ExtractionError("The extraction service is shutting down. Try again.", reason="internal")
                own = [child for child in self._idle if child.jobs and child.owner == owner]
                fitting = own or [child for child in self._idle if not child.jobs]
                child = next(iter(fitting or self._idle), None)
                if child is not None:
                    self._idle.remove(child)
            if child is not None and not (fitting and child.alive and child.is_silent):
                child.close()
                if fitting:
                    continue
                child = None  # it was another's, and gave its place
            child = child or self._start()
            child.owner = owner
            return child

    def _start(self) -> Child:
        child = self._starter.submit(Child, readable=self._readable, languages=self._languages, programs=self._programs).result()
        child.wait_ready()
        self._state = child.state
        if not self._limits_only:
            try:
                require_closed(child.state)
            except Unavailable:
                child.close()
                raise
        return child

    def _put_back(self, child: Child) -> None:
        spent = child.jobs >= FILES_PER_CHILD or child.rss_mb > self._retired_above_mb or not child.alive
        with self._lock:
            if not spent and not self._closed:
                self._idle.append(child)
                return
        child.close()
