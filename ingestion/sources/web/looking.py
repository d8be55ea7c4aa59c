"""Looking at the addresses of a site one after the other, as a run would, with what comes of each kept in memory."""

import hashlib
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from django.conf import settings

from config.errors import LecternError
from ingestion.crawl.answers import Kind
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.urls import origin
from ingestion.models import RunItem
from ingestion.reading import Parted, Reading, read_file
from ingestion.sources.listed import within
from ingestion.sources.web import settling
from ingestion.sources.web.hosts import refusal
from ingestion.sources.web.pages import Read, judge
from ingestion.sources.web.requests import Requests
from ingestion.sources.web.visit import LINKS_CUT, Visit

Stage, Verdict = RunItem.Stage, RunItem.Verdict
TIMEOUT = 10.0
NO_BROWSER = "Scripts make the page: a run has a browser make it, this look has not."


class Looking(Visit):
    """Each address is asked for once: what a run would try again counts as failed here. `until` (of `time.monotonic`) is when it ends."""

    until: float
    is_whole = True
    """False where a run would not have seen everything either."""

    def note(self, read: Read) -> None:
        """Called with a page that got a verdict, before its item gets it."""

    @contextmanager
    def asking(self) -> Iterator[Requests]:
        """Requests that stop when the time is up, whatever they wait for."""
        timeout = min(self.web.timeout_seconds, TIMEOUT)
        fetcher = Fetcher(user_agent=self.agent, timeout_seconds=timeout, allowed=settings.ENV.allowed_private_networks, connections=1)
        left = max(0.0, self.until - time.monotonic())
        requests = Requests(fetcher, delay=self.hosts.delay, at_most=left)
        end = Timer(left, requests.stop)
        end.daemon = True
        end.start()
        try:
            yield requests
        finally:
            end.cancel()
            fetcher.close()

    def look(self, item: RunItem, requests: Requests) -> Reading | None:
        """Ask for one address; what would be cut and embedded, or None with its verdict on the item. Raises `Stopped`."""
        host = origin(item.url)
        if self.hosts.get(host) is None:
            self.robots_came(host, self.hosts.read(host, requests))
        if refused := refusal(self.hosts.get(host), item.url):
            if item.key == self.start_key:
                self.start_is_refused(refused[1])
            return self.close(item, Verdict.FAILED if refused[0] == "robots_unavailable" else Verdict.SKIPPED, *refused)
        asked = requests.ask_page(item.url, max_bytes=self.plan.settings.max_bytes_per_page, **self.validators(item))
        settled = self.understand(item, asked)
        settling.slow_down(settled)
        item.requests, item.url, item.response = asked.requests, asked.url, settling.response_of(settled)
        meaning = settled.meaning
        if meaning.kind in (Kind.PAGE, Kind.FILE):
            return self._read(item, asked.answer.body, is_file=meaning.kind == Kind.FILE)
        target, found = settling.target_of(settled, self.admission)
        item.response = {**(item.response or {}), **target}
        self.add(found)
        if item.key == self.start_key:
            self.warn_of_start(settled)
        return self.close(item, settling.VERDICTS[meaning.kind], meaning.reason, meaning.text)

    def _read(self, item: RunItem, body: bytes, *, is_file: bool) -> Reading | None:
        item.content_hash = hashlib.sha256(body).digest()
        if is_file and settling.is_same_file(item, item.content_hash, self.run, self.plan):
            return self.close(item, Verdict.UNCHANGED)
        try:
            with tempfile.NamedTemporaryFile(prefix="lectern-look-") as file:
                file.write(body)
                file.flush()
                reading = read_file(item, Path(file.name), within(self.plan, self.until - time.monotonic()))
        except LecternError as error:
            return self.close(item, Verdict.FAILED, str(error.extra.get("reason", "extraction_failed")), error.message)
        return self.judged(reading.unread() if isinstance(reading, Parted) else reading)

    def judged(self, reading: Reading) -> Reading | None:
        """The reading, if it is to be cut, embedded and published; else None, with the verdict on its item."""
        read, item = judge(self.run, reading, self.plan), reading.item
        self.add(read.found)
        if reading.page is not None and reading.page["cut"]:
            self.is_whole = False
            self.state.warn(LINKS_CUT.format(item.url[:500]))
        if not read.verdict:
            return reading
        item.title, item.response = reading.extracted["title"][:300], {**(item.response or {}), **read.response}
        self.note(read)
        return self.close(item, read.verdict, read.reason, NO_BROWSER if read.render else read.text)

    def close(self, item: RunItem, verdict: str, reason: str = "", text: str = "") -> None:
        item.stage, item.verdict, item.reason, item.error = Stage.DONE, verdict, reason, text
