"""What a run would do, without doing it: nothing is written, and time and documents are bounded."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID

from django.conf import settings

from config.errors import Conflict, LecternError, TooManyRequests
from config.registry import Registry
from ingestion.models import EmbeddedText, IngestionRun, RunItem
from ingestion.plan import Plan, plan_for
from ingestion.reading import read_item, text_hash
from ingestion.sources.base import Listed
from ingestion.stages.listing import item_for
from kb.models import Document, KnowledgeBase, Source

MAX_SECONDS = 100.0
MAX_DOCUMENTS = 500
AT_ONCE = 3
RETRY_SECONDS = 30
PAGE = 50
_running = BoundedSemaphore(AT_ONCE)


class Change(StrEnum):
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    FAILED = "failed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Previewed:
    """One document; `tokens` are those of chunks whose vectors are not paid yet."""

    document: Document
    change: Change
    chunks: int = 0
    embeddings: int = 0
    tokens: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """Unchanged documents are only counted. `complete` is false when a bound ended it: then nothing is called gone."""

    documents: list[Previewed]
    counts: dict[str, int]
    chunks: int
    embeddings: int
    tokens: int
    cost: str | None
    complete: bool
    seconds: float
    warnings: tuple[str, ...]


def preview_source(source: Source, *, max_seconds: float = MAX_SECONDS, max_documents: int = MAX_DOCUMENTS) -> Preview:
    """Read what the source has now and compare. `TooManyRequests` while three others are at it in this process."""
    if source.kind not in settings.SOURCE_LISTERS:
        raise Conflict(f"A source of kind {source.kind} has nothing that lists its documents; there is nothing to preview.")
    with _place():
        return _preview(source, time.monotonic(), max_seconds, max_documents)


@contextmanager
def _place() -> Iterator[None]:
    if not _running.acquire(blocking=False):
        raise TooManyRequests(f"{AT_ONCE} previews are under way here. Try again in {RETRY_SECONDS} seconds.", retry_after=RETRY_SECONDS)
    try:
        yield
    finally:
        _running.release()


def _preview(source: Source, started: float, max_seconds: float, max_documents: int) -> Preview:
    knowledge_base = KnowledgeBase.objects.select_related("current", "space__embedding_model").get(id=source.knowledge_base_id)
    run = IngestionRun(  # never saved: it carries the version and the space that a run would have
        organization_id=source.organization_id,
        knowledge_base=knowledge_base,
        source=source,
        version=knowledge_base.current,
        space=knowledge_base.space,
    )
    plan = plan_for(run)
    found: list[Previewed] = []
    seen: list[UUID] = []
    complete = True
    for entry in _listed(source):
        left = started + max_seconds - time.monotonic()
        if left <= 0 or len(seen) >= max_documents:
            complete = False
            break
        seen.append(entry.document.id)
        found.append(_look(run, entry, plan, left))
    if complete:
        gone = Document.objects.filter(source=source, tombstoned_at=None).exclude(id__in=seen).order_by("id")[:max_documents]
        found += [Previewed(document, Change.GONE) for document in gone]
    tokens = sum(row.tokens for row in found)
    number = Counter(row.change for row in found)
    price = run.space.embedding_model.price_per_million_tokens
    return Preview(
        documents=[row for row in found if row.change != Change.UNCHANGED],
        counts={change.value: number[change] for change in Change},
        chunks=sum(row.chunks for row in found),
        embeddings=sum(row.embeddings for row in found),
        tokens=tokens,
        cost=str(price * Decimal(tokens) / 1_000_000) if price is not None else None,
        complete=complete,
        seconds=round(time.monotonic() - started, 3),
        warnings=plan.warnings,
    )


def _listed(source: Source) -> Iterator[Listed]:
    lister = Registry("source", settings.SOURCE_LISTERS).load(source.kind)
    after: UUID | None = None
    while page := list(lister(source, after=after, limit=PAGE)):
        yield from page
        after = page[-1].document.id


def _look(run: IngestionRun, entry: Listed, plan: Plan, left: float) -> Previewed:
    item = item_for(run, entry, plan)
    document = entry.document
    if item.verdict == RunItem.Verdict.UNCHANGED:
        return Previewed(document, Change.UNCHANGED)
    if item.verdict:
        return Previewed(document, Change.FAILED, error=item.error)
    limits: dict[str, Any] = {**plan.extract, "max_seconds": max(1.0, min(left, plan.extract.get("max_seconds", 60.0)))}
    try:
        reading = read_item(item, replace(plan, extract=limits))
    except LecternError as error:
        return Previewed(document, Change.FAILED, error=error.message)
    prefix = run.space.embedding_model.document_prefix
    wanted = {text_hash(prefix + text): passage["tokens"] for text, passage in zip(reading.texts(), reading.passages, strict=True)}
    paid = EmbeddedText.objects.filter(
        organization_id=run.organization_id, space_id=run.space_id, text_hash__in=wanted, vector__isnull=False
    ).values_list("text_hash", flat=True)
    for digest in paid:
        wanted.pop(bytes(digest), None)
    change = Change.CHANGED if document.generation and document.tombstoned_at is None else Change.NEW
    return Previewed(document, change, chunks=len(reading.passages), embeddings=len(wanted), tokens=sum(wanted.values()))
