"""A look at a site: the first pages that a run would read, one request after the other, with the frontier in memory."""

import time
from collections.abc import Iterator, Sequence

from django.db import connection

from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.reading import Reading
from ingestion.sources.web.frontier import Found, may_reopen, row_of
from ingestion.sources.web.hosts import Hosts
from ingestion.sources.web.looking import NO_BROWSER, Looking
from ingestion.sources.web.pages import DEFERENCES, DEFERS, Read
from ingestion.sources.web.preparation import prepare
from ingestion.sources.web.requests import Requests, Stopped
from ingestion.sources.web.state import SiteState
from ingestion.sources.web.visit import ATTEMPTS_PER_PAGE, agent_of
from kb.models import Document
from kb.models.base import key_hash

Stage, Verdict = RunItem.Stage, RunItem.Verdict
MAX_SECONDS = 80.0  # of asking; an answer that trickles may take its time-out four times longer
MAX_PAGES = 50
MAX_ADDRESSES = 20_000
OUT_OF_TIME = "Its time was up, or the site wants longer pauses than that."


class SiteLook(Looking):
    """The frontier is in memory too."""

    def __init__(self, run: IngestionRun, plan: Plan, *, until: float, most: int = MAX_PAGES) -> None:
        self.agent = agent_of(plan.web)
        super().__init__(run, plan=plan, hosts=Hosts(run, web=plan.web, agent=self.agent), state=SiteState())
        self.stopped = self._unseen = ""
        self.until = min(until, time.monotonic() + MAX_SECONDS)
        self._most = min(most, MAX_PAGES)
        self._items: dict[str, RunItem] = {}
        self._deferred: list[Reading] = []
        self._asked = 0

    @property
    def items(self) -> list[RunItem]:
        return list(self._items.values())

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until

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
        try:
            with self.asking() as requests:
                yield from self._visit(requests)
        except Stopped:
            self.stopped = OUT_OF_TIME
        if not self.stopped:
            yield from self._reopened()
            self.stopped = self._unseen or self._silence()

    def _visit(self, requests: Requests) -> Iterator[Reading]:
        if prepare(self, requests, self):
            yield from self._walk(requests)
        else:
            self.stopped = OUT_OF_TIME

    def _walk(self, requests: Requests) -> Iterator[Reading]:
        while (item := self._next()) is not None:
            self.stopped = self._limit()
            if self.stopped:
                return
            item.document = Document.objects.filter(source_id=self.run.source_id, key_hash=bytes(item.key_hash)).first()
            if not connection.in_atomic_block:
                connection.close()  # others may use it while the site is asked
            reading = self.look(item, requests)
            self._asked += item.requests
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

    def note(self, read: Read) -> None:
        if read.render:
            self._unseen = NO_BROWSER
        if read.reason == "duplicate_of":
            self._deferred.append(read.reading)

    def _reopened(self) -> Iterator[Reading]:
        """Pages that deferred to one which gives nothing stand for themselves."""
        for reading in [reading for reading in self._deferred if not self._gives(reading.item.response["target"])]:
            item = reading.item
            item.stage, item.verdict, item.reason, item.error = Stage.EXTRACTED, "", "", ""
            if self.judged(reading) is not None:
                yield reading

    def _gives(self, key: str) -> bool:
        for _ in range(DEFERENCES):
            item = self._items.get(key)
            if item is None or item.reason not in DEFERS or "target" not in (item.response or {}):
                break
            key = item.response["target"]
        return item is not None and (item.stage == Stage.EXTRACTED or item.verdict == Verdict.UNCHANGED)
