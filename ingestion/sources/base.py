"""What a source lists: one entry per document that it has now. And how a preview looks at one."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.reading import Reading
from kb.models import Document, Source


@dataclass(frozen=True, slots=True)
class Listed:
    """A document that the source has, and the bytes that stand for it now."""

    document: Document
    blob_id: UUID
    content_hash: bytes
    size: int
    policy: Mapping[str, Any] | None = None
    """What the item keeps, of a source whose documents have policies of their own."""


class Lister(Protocol):
    def __call__(self, source: Source, *, after: UUID | None, limit: int) -> Iterator[Listed]: ...


class Look(Protocol):
    """A look at what a source has now, as a run that is not saved would see it; nothing is written.

    Made with the run, its plan, the time (of `time.monotonic`) at which it has to end, and a most number of documents.
    """

    items: Collection[RunItem]
    """What came up so far. Without a verdict: what would be taken in, or was not looked at because the look was `stopped`."""
    stopped: str
    """Why it ended before it had seen everything, or ""."""

    def __init__(self, run: IngestionRun, plan: Plan, *, until: float, most: int) -> None: ...

    def read(self) -> Iterator[Reading]:
        """What would be cut, embedded and published."""
        ...
