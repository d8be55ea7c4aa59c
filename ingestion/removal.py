"""Taking documents out of what answers, and out of a source."""

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from ingestion import claims
from ingestion.attachments import remove_attachments
from ingestion.counters import by_reason
from ingestion.models import IngestionRun, RunItem
from kb.models import Dataset, Document, Source

REMOVED = "The source does not have it any more, so it was removed."


def remove_documents(run: IngestionRun, ids: Sequence[UUID]) -> None:
    """Take documents out of what answers: chunks first (vectors and words with them), then the row says so, in one transaction.

    Each is a verdict of the run, and of the run that planned it if that was confirmed.
    """
    with claims.writing(run):
        rows = (
            Document.objects.select_for_update(no_key=True).filter(id__in=ids, source_id=run.source_id, tombstoned_at=None).order_by("id")
        )
        removed = []
        for document in rows:
            document.chunks.all().delete()
            remove_attachments([document.id])
            document.dataset_parts.all().delete()
            Document.objects.filter(id=document.id).update(
                tombstoned_at=timezone.now(),
                content_hash=None,
                chunk_count=0,
                generation=document.generation + 1,
                epoch=document.epoch + 1,
                last_error="",
            )
            removed.append(document)
        _note_removed(run, removed)
        if run.confirms_id and removed:
            _note_removed(run.confirms, removed)
            _count_removed(run.confirms_id, len(removed))


def _note_removed(run: IngestionRun, documents: Sequence[Document]) -> None:
    """Their verdicts, beside what the run was told of them."""
    said = dict(
        RunItem.objects.filter(run=run, document_id__in=[document.id for document in documents]).values_list("document_id", "error")
    )
    items = [
        RunItem(
            organization_id=run.organization_id,
            run=run,
            document=document,
            key=document.key,
            key_hash=bytes(document.key_hash),
            url=document.url,
            title=document.title,
            stage=RunItem.Stage.DONE,
            verdict=RunItem.Verdict.REMOVED,
            reason="missed",
            error=f"{said.get(document.id, '')} {REMOVED}".strip(),
        )
        for document in documents
    ]
    updated = ["document", "verdict", "reason", "error"]
    RunItem.objects.bulk_create(items, update_conflicts=True, unique_fields=["run", "key_hash"], update_fields=updated)


def _count_removed(run_id: UUID, more: int) -> None:
    """The counters of a closed run, once somebody has confirmed what it planned."""
    run = IngestionRun.objects.select_for_update(no_key=True).get(id=run_id)
    items = RunItem.objects.filter(run=run)
    counters = {**run.counters, "removed": run.counters.get("removed", 0) + more, "found": items.count(), **by_reason(items)}
    IngestionRun.objects.filter(id=run_id).update(counters=counters)


def hand_over(source: Source, heir: Source) -> None:
    """Give all that a source has learned to another, which is being removed; in the transaction that has ended its runs."""
    Document.objects.filter(source=source).update(source=heir)
    Dataset.objects.filter(source=source).update(source=heir)
    waiting = IngestionRun.objects.filter(source=source, status=IngestionRun.Status.NEEDS_CONFIRMATION)
    waiting.update(status=IngestionRun.Status.SUCCEEDED, planned_removals=[], error="Its source got another type.")
