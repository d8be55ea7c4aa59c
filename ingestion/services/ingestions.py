"""How far a pushed text has come: read from its item, and from its run once the item's row was collected."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from ingestion.models import IngestionRun, RunItem
from ingestion.services.progress import progress_of
from kb.models import Document

PENDING, PROCESSING, COMPLETED, FAILED = "pending", "processing", "completed", "failed"


@dataclass(frozen=True, slots=True)
class IngestionStatus:
    status: str
    document_id: UUID | None
    counters: Mapping[str, object]
    reason: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    waiting_for: str = ""


def status_of(run: IngestionRun) -> IngestionStatus:
    """The status of a push run; a text that is published counts as completed before its run is closed."""
    item = RunItem.objects.filter(run=run).order_by("id").first()
    progress = progress_of(run)
    status = _status(run, item)
    failed = status == FAILED
    return IngestionStatus(
        status=status,
        document_id=_document_id(run),
        counters=progress.counters,
        reason=(item.reason if item else "") if failed else "",
        error=((item.error if item else "") or run.error) if failed else "",
        warnings=(*run.warnings, *(item.warnings if item else ())),
        waiting_for="" if status in (COMPLETED, FAILED) else progress.waiting_for,
    )


def _status(run: IngestionRun, item: RunItem | None) -> str:
    if item is not None and item.verdict:
        return COMPLETED if item.verdict in (RunItem.Verdict.INGESTED, RunItem.Verdict.UNCHANGED) else FAILED
    if not run.is_open:
        return COMPLETED if run.status == IngestionRun.Status.SUCCEEDED else FAILED
    untouched = item is None or (item.stage == RunItem.Stage.FETCHED and not (item.lease_until and item.lease_until > timezone.now()))
    return PENDING if untouched else PROCESSING


def _document_id(run: IngestionRun) -> UUID | None:
    identifier = run.crawl_state.get("document")
    return Document.objects.filter(id=identifier).values_list("id", flat=True).first() if identifier else None
