"""What a person or a schedule does to runs."""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from config.errors import Conflict, NotFound
from ingestion import claims, wakes
from ingestion.models import IngestionRun, RunItem
from ingestion.removal import remove_documents
from kb.models import Document, KnowledgeBase, Source, User

Kind, Status, StopReason = IngestionRun.Kind, IngestionRun.Status, IngestionRun.StopReason


def start_run(source: Source, *, trigger: str = IngestionRun.Trigger.MANUAL, user: User | None = None) -> IngestionRun:
    """Claim the source and queue a run under the current version. Raises `Conflict` (disabled, or held by another run)."""
    knowledge_base = KnowledgeBase.objects.select_related("current", "space").get(id=source.knowledge_base_id)
    if knowledge_base.state != KnowledgeBase.State.ACTIVE or source.state != Source.State.ACTIVE:
        raise NotFound()
    if source.kind not in (Source.Kind.WEB, Source.Kind.UPLOAD):
        raise Conflict("This source takes what is pushed to it; there is nothing to run.")
    if not source.enabled:
        raise Conflict(f"The source '{source.name}' is disabled. Enable it and publish, then run it.")
    run = claims.claim(source, trigger=trigger, version=knowledge_base.current, space=knowledge_base.space, user=user)
    transaction.on_commit(partial(wakes.wake, run.id, "crawl"))
    return run


def cancel_run(run: IngestionRun) -> None:
    """Stop a run; what it has published stays. `Conflict` if it is closed already."""
    if not claims.cancel(run):
        raise Conflict("This run has already ended; there is nothing to cancel.")


def purge_source(source: Source, *, reembed: bool = False, user: User | None = None) -> int:
    """Forget what was ingested, so that the next run does everything again; returns how many documents forgot.

    Chunks go on answering until then. Vectors of equal texts are reused, unless `reembed`. Takes the source's claim.
    """
    run = claims.claim(source, kind=Kind.MAINTENANCE, version=None, space=None, user=user, listed_at=timezone.now())
    with claims.writing(run):
        forgotten = Document.objects.filter(source=source).update(
            content_hash=None,
            extract_fingerprint="",
            chunk_fingerprint="",
            context_fingerprint="",
            quarantined_hash=None,
            etag="",
            last_modified="",
        )
        if reembed:
            forget_vectors(source)
    claims.finish(run, status=Status.SUCCEEDED, stop_reason=StopReason.COMPLETED)
    return forgotten


def forget_vectors(source: Source) -> None:
    """Drop the paid vectors of the source's texts, so that the next run pays for them again."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM ingestion_embeddedtext text USING kb_chunk chunk, kb_document document"
            " WHERE document.source_id = %s AND chunk.document_id = document.id"
            " AND text.organization_id = document.organization_id AND text.space_id = document.space_id AND text.text_hash = chunk.text_hash",
            [source.id],
        )


def confirm_removals(run: IngestionRun, *, user: User | None = None) -> int:
    """Remove what a braked run planned to remove, looking at each document again; returns how many went."""
    planned = _answer(run, Status.SUCCEEDED)
    source = run.source
    maintenance = claims.claim(
        source, kind=Kind.MAINTENANCE, version=run.version, space=run.space, user=user, listed_at=timezone.now()
    )
    still = Document.objects.filter(id__in=planned, source=source, tombstoned_at=None, missed_runs__gt=0) | Document.objects.filter(
        id__in=planned, source=source, tombstoned_at=None, last_run_id=run.id
    )
    # A document that a later run saw again has another last run and no misses.
    ids = list(still.values_list("id", flat=True).distinct())
    for start in range(0, len(ids), 100):
        remove_documents(maintenance, ids[start : start + 100])
    claims.finish(maintenance, status=Status.SUCCEEDED, stop_reason=StopReason.COMPLETED)
    return len(ids)


def reject_removals(run: IngestionRun) -> int:
    """Forget the plan of a braked run and start counting misses anew; returns how many documents stay."""
    planned = _answer(run, Status.SUCCEEDED)
    return Document.objects.filter(id__in=planned, source_id=run.source_id).update(missed_runs=0)


def _answer(run: IngestionRun, status: str) -> list[UUID]:
    """Take the plan exactly once."""
    with transaction.atomic():
        row = IngestionRun.objects.select_for_update(no_key=True).get(id=run.id)
        if row.status != Status.NEEDS_CONFIRMATION:
            raise Conflict("This run does not wait for a confirmation.")
        row.status = status
        planned = row.planned_removals
        row.planned_removals = []
        row.save(update_fields=["status", "planned_removals"])
    return [UUID(value) for value in planned]


def settle_closed_run(run: IngestionRun, *, limit: int = 1000) -> int:
    """Give the items that a closed run left open their verdict; returns how many."""
    ids = RunItem.objects.filter(run=run).exclude(stage=RunItem.Stage.DONE).values_list("id", flat=True)[:limit]
    return RunItem.objects.filter(id__in=list(ids)).update(
        stage=RunItem.Stage.DONE,
        verdict=RunItem.Verdict.SKIPPED,
        reason="run_closed",
        passages=None,
        text_hashes=None,
        extracted=None,
        lease_token=None,
        lease_until=None,
        changed_at=timezone.now(),
    )
