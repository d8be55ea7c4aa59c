"""A look at a site: the first pages that a run would read, one request after the other, with the frontier in memory."""

import hashlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Timer

from django.conf import settings
from django.db import connection

from config.errors import LecternError
from ingestion.crawl.answers import Kind
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.urls import origin
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.reading import Reading, read_file
from ingestion.sources.listed import within
from ingestion.sources.web import settling
from ingestion.sources.web.frontier import Found, may_reopen, row_of
from ingestion.sources.web.hosts import Hosts, refusal
from ingestion.sources.web.pages import DEFERENCES, judge
from ingestion.sources.web.preparation import prepare
from ingestion.sources.web.requests import Requests, Stopped
from ingestion.sources.web.state import SiteState
from ingestion.sources.web.visit import ATTEMPTS_PER_PAGE, LINKS_CUT, Visit, agent_of
from kb.models import Document
from kb.models.base import key_hash

Stage, Verdict = RunItem.Stage, RunItem.Verdict
MAX_SECONDS = 80.0  # of asking; an answer that trickles may take `TIMEOUT` four times longer
TIMEOUT = 10.0
MAX_PAGES = 50
MAX_ADDRESSES = 20_000
NO_BROWSER = "Scripts make the page: a run has a browser make it, a preview has not."
OUT_OF_TIME = "Its time was up, or the site wants longer pauses than that."


class SiteLook(Visit):
    """Each address is asked for once: what a run would try again counts as failed here."""

    def __init__(self, run: IngestionRun, plan: Plan, *, until: float, most: int = MAX_PAGES) -> None:
        self.agent = agent_of(plan.web)
        super().__init__(run, plan=plan, hosts=Hosts(run, web=plan.web, agent=self.agent), state=SiteState())
        self.stopped = self._unseen = ""
        self.is_whole = True  # False where a run would not have seen everything either
        self._until = min(until, time.monotonic() + MAX_SECONDS)
        self._most = min(most, MAX_PAGES)
        self._items: dict[str, RunItem] = {}
        self._deferred: list[Reading] = []
        self._asked = 0

    @property
    def items(self) -> list[RunItem]:
        return list(self._items.values())

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._until

    def beat(self) -> None:
        """Nobody waits for a sign of life."""

    def add(self, found: Sequence[Found]) -> None:
        for each in found:
            known = self._items.get(each.key)
            if known is not None and not may_reopen(each, known.reason, known.stage):
                continue
            if known is not None or len(self._items) < MAX_ADDRESSES:
                self._items[each.key] = row_of(self.run, key_hash(each.key), each)

    def save(self, *, every: float = 0.0) -> None:
        """It is all in memory."""

    def read(self) -> Iterator[Reading]:
        timeout = min(self.web.timeout_seconds, TIMEOUT)
        fetcher = Fetcher(user_agent=self.agent, timeout_seconds=timeout, allowed=settings.ENV.allowed_private_networks, connections=1)
        left = max(0.0, self._until - time.monotonic())
        requests = Requests(fetcher, delay=self.hosts.delay, at_most=left)
        end = Timer(left, requests.stop)
        end.daemon = True
        end.start()
        try:
            if not prepare(self, requests, self):
                self.stopped = OUT_OF_TIME
                return
            yield from self._walk(requests)
        except Stopped:
            self.stopped = OUT_OF_TIME
        finally:
            end.cancel()
            fetcher.close()
        if not self.stopped:
            yield from self._reopened()
            self.stopped = self._unseen or self._silence()

    def _walk(self, requests: Requests) -> Iterator[Reading]:
        while (item := self._next()) is not None:
            self.stopped = self._limit()
            if self.stopped:
                return
            item.document = Document.objects.filter(source_id=self.run.source_id, key_hash=bytes(item.key_hash)).first()
            if not connection.in_atomic_block:
                connection.close()  # others may use it while the site is asked
            reading = self._look(item, requests)
            if item.key == self.start_key:
                self.start_is_read(is_shell=item.reason == "needs_javascript")
            if reading is not None:
                item.stage = Stage.EXTRACTED
                yield reading

    def _next(self) -> RunItem | None:
        """The first of the lowest depth, as in a crawl."""
        return min((item for item in self._items.values() if item.stage == Stage.FOUND), key=lambda item: item.depth, default=None)

    def _silence(self) -> str:
        """Of a site that gave nothing: what its start page says."""
        failed = [item for item in self._items.values() if item.verdict == Verdict.FAILED]
        nothing = not any(item.stage == Stage.EXTRACTED or item.verdict == Verdict.UNCHANGED for item in self._items.values())
        start = next((item.error for item in failed if item.key == self.start_key), "")
        return f"The site could not be read. {start}" if nothing and start else ""

    def _limit(self) -> str:
        if self.is_over:
            return OUT_OF_TIME
        pages = sum(item.stage == Stage.EXTRACTED or item.verdict == Verdict.UNCHANGED for item in self._items.values())
        if pages >= self.web.max_pages or self._asked >= ATTEMPTS_PER_PAGE * self.web.max_pages:
            return f"A run would end here too: web.max_pages is {self.web.max_pages}."
        if pages >= self._most or self._asked >= ATTEMPTS_PER_PAGE * self._most:
            return f"It reads at most {self._most} pages."
        return ""

    def _look(self, item: RunItem, requests: Requests) -> Reading | None:
        """Ask for one address; what would be cut and embedded, or None with its verdict on the item."""
        host = origin(item.url)
        if self.hosts.get(host) is None:
            self.robots_came(host, self.hosts.read(host, requests))
        if refused := refusal(self.hosts.get(host), item.url):
            if item.key == self.start_key:
                self.start_is_refused(refused[1])
            return self._close(item, Verdict.FAILED if refused[0] == "robots_unavailable" else Verdict.SKIPPED, *refused)
        asked = requests.ask_page(item.url, max_bytes=self.plan.settings.max_bytes_per_page, **self.validators(item))
        settled = self.understand(item, asked)
        settling.slow_down(settled)
        self._asked += asked.requests
        item.requests, item.url, item.response = asked.requests, asked.url, settling.response_of(settled)
        meaning = settled.meaning
        if meaning.kind in (Kind.PAGE, Kind.FILE):
            return self._read(item, asked.answer.body, is_file=meaning.kind == Kind.FILE)
        target, found = settling.target_of(settled, self.admission)
        item.response = {**(item.response or {}), **target}
        self.add(found)
        if item.key == self.start_key:
            self.warn_of_start(settled)
        return self._close(item, settling.VERDICTS[meaning.kind], meaning.reason, meaning.text)

    def _read(self, item: RunItem, body: bytes, *, is_file: bool) -> Reading | None:
        item.content_hash = hashlib.sha256(body).digest()
        if is_file and settling.is_same_file(item, item.content_hash, self.run, self.plan):
            return self._close(item, Verdict.UNCHANGED)
        try:
            with tempfile.NamedTemporaryFile(prefix="lectern-preview-") as file:
                file.write(body)
                file.flush()
                reading = read_file(item, Path(file.name), within(self.plan, self._until - time.monotonic()))
        except LecternError as error:
            return self._close(item, Verdict.FAILED, str(error.extra.get("reason", "extraction_failed")), error.message)
        return self._judged(reading)

    def _judged(self, reading: Reading) -> Reading | None:
        read, item = judge(self.run, reading, self.plan), reading.item
        self.add(read.found)
        if reading.page is not None and reading.page["cut"]:
            self.is_whole = False
            self.state.warn(LINKS_CUT.format(item.url[:500]))
        if not read.verdict:
            return reading
        if read.render:
            self._unseen = NO_BROWSER
        item.title, item.response = reading.extracted["title"][:300], {**(item.response or {}), **read.response}
        if read.reason == "duplicate_of":
            self._deferred.append(reading)
        return self._close(item, read.verdict, read.reason, NO_BROWSER if read.render else read.text)

    def _reopened(self) -> Iterator[Reading]:
        """Pages that deferred to one which gives nothing stand for themselves."""
        for reading in [reading for reading in self._deferred if not self._gives(reading.item.response["target"])]:
            item = reading.item
            item.stage, item.verdict, item.reason, item.error = Stage.EXTRACTED, "", "", ""
            if self._judged(reading) is not None:
                yield reading

    def _gives(self, key: str) -> bool:
        for _ in range(DEFERENCES):
            item = self._items.get(key)
            if item is None or item.reason != "duplicate_of":
                break
            key = item.response["target"]
        return item is not None and (item.stage == Stage.EXTRACTED or item.verdict == Verdict.UNCHANGED)

    def _close(self, item: RunItem, verdict: str, reason: str = "", text: str = "") -> None:
        item.stage, item.verdict, item.reason, item.error = Stage.DONE, verdict, reason, text
