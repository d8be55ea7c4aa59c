"""A look at a source that lists its documents."""

import time
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from django.conf import settings

from config.errors import LecternError
from config.registry import Registry
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.reading import Parted, Reading, read_item
from ingestion.sources.base import Listed
from ingestion.stages.listing import item_for

MAX_DOCUMENTS = 500
PAGE = 50


class ListedLook:
    """By the bytes that the source has stored."""

    def __init__(self, run: IngestionRun, plan: Plan, *, until: float, most: int = MAX_DOCUMENTS) -> None:
        self.items: list[RunItem] = []
        self.stopped = ""
        self._run, self._plan, self._until, self._most = run, plan, until, min(most, MAX_DOCUMENTS)

    def read(self) -> Iterator[Reading]:
        for entry in self._listed():
            left = self._until - time.monotonic()
            if left <= 0 or len(self.items) >= self._most:
                self.stopped = "Its time was up." if left <= 0 else f"It looks at {self._most} documents at most."
                return
            item = item_for(self._run, entry, self._plan)
            self.items.append(item)
            if not item.verdict and (reading := self._read(item, left)):
                yield reading

    def _read(self, item: RunItem, left: float) -> Reading | None:
        try:
            found = read_item(item, within(self._plan, left))
            return found.unread() if isinstance(found, Parted) else found
        except LecternError as error:
            item.stage, item.verdict, item.error = RunItem.Stage.DONE, RunItem.Verdict.FAILED, error.message
            item.reason = str(error.extra.get("reason", "extraction_failed"))
            return None

    def _listed(self) -> Iterator[Listed]:
        lister = Registry("source", settings.SOURCE_LISTERS).load(self._run.source.kind)
        after: UUID | None = None
        while page := list(lister(self._run.source, after=after, limit=PAGE)):
            yield from page
            after = page[-1].document.id


def within(plan: Plan, seconds: float) -> Plan:
    """The plan, with no extraction longer than what is left of the time."""
    most = min(seconds, plan.extract.get("max_seconds", 60.0))
    return replace(plan, extract={**plan.extract, "max_seconds": max(1.0, most)})
