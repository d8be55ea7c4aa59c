"""What people say to a braked deletion: it is confirmed, or rejected, or a later run takes its place.

A confirmed deletion is a run of its own, of kind `maintenance`. Of a site it asks again for each address, in slices like any run; what it
removes is a verdict of it and of the run that planned it.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from config.errors import Conflict, NotFound
from ingestion import claims
from ingestion.models import IngestionRun, RunItem
from ingestion.reconcile import NOT_LOOKED_AT
from ingestion.stages import slices
from kb import access
from kb.access import Actor
from kb.models import Document, KnowledgeBase, Source, User

log = logging.getLogger(__name__)

Kind, Status, Stage, Verdict = IngestionRun.Kind, IngestionRun.Status, RunItem.Stage, RunItem.Verdict
WAIT_SECONDS = 5.0  # for a worker that was quicker to take up what is worked here
CONFIRMED = "It was confirmed that the source does not have it any more."


@dataclass(frozen=True, slots=True)
class Confirmed:
    """`deletion` is the run that removes; while it is open, workers go on with it and the numbers are those so far."""

    deletion: IngestionRun
    removed: int
    kept: int

    @property
    def is_done(self) -> bool:
        return not self.deletion.is_open


def confirm_removals(run: IngestionRun, *, user: User | None = None, by: str = "", unasked: bool = False) -> Confirmed:
    """Carry out what a braked run planned. What was seen again since stays, and, unless `unasked`, what a site still gives.

    The source is claimed before the plan is taken: a run in the way is a `Conflict`, and the plan waits. One slice of it is worked here,
    so that a small plan is done with the answer.
    """
    _require_plan(run)
    source = Source.objects.select_related("knowledge_base__current", "knowledge_base__space").get(id=run.source_id)
    knowledge_base = source.knowledge_base
    if knowledge_base.state != KnowledgeBase.State.ACTIVE:
        raise NotFound()
    current = {"version": knowledge_base.current, "space": knowledge_base.space}
    deletion = claims.claim(source, kind=Kind.MAINTENANCE, user=user, by=by, confirms=run, **current)
    asks = source.kind == Source.Kind.WEB and not unasked
    try:
        planned = _plan_deletion(run, deletion, by=by or (user.get_username() if user else "the system"), asks=asks)
    except BaseException as error:
        claims.finish(deletion, status=Status.FAILED, stop_reason="", error=str(error)[:2000])
        raise
    _work_here(deletion)
    deletion = IngestionRun.objects.get(id=deletion.id)
    removed = RunItem.objects.filter(run=deletion, verdict=Verdict.REMOVED).count()
    return Confirmed(deletion, removed, 0 if deletion.is_open else planned - removed)


def _plan_deletion(run: IngestionRun, deletion: IngestionRun, *, by: str, asks: bool) -> int:
    """Take the plan, which is done once, and write down what the deletion has to look at; how many documents were planned."""
    with transaction.atomic():
        planned = _answer(run, decision="confirmed", by=by, deletion=deletion)
        documents = _unseen_since(run, planned).order_by("id")
        with claims.updating(deletion) as row:
            told = _told(run) if deletion.version_id == run.version_id else {}
            RunItem.objects.bulk_create([_item(deletion, document, told, asks=asks) for document in documents.iterator()], batch_size=1000)
            row.status, row.started_at = Status.RUNNING, timezone.now()
            row.listed_at = None if asks else timezone.now()
            row.save(update_fields=["status", "started_at", "listed_at"])
    return len(planned)


def _told(run: IngestionRun) -> dict[UUID, tuple[str, str]]:
    """Documents that the rules of the source left out: under the same rules nobody needs to ask for them again."""
    rows = RunItem.objects.filter(run=run, document__isnull=False, reason__in=NOT_LOOKED_AT)
    return {document: (reason, error) for document, reason, error in rows.values_list("document_id", "reason", "error")}


def _item(deletion: IngestionRun, document: Document, told: Mapping[UUID, tuple[str, str]], *, asks: bool) -> RunItem:
    reason, text = told.get(document.id, ("", "")) if asks else ("not_asked", CONFIRMED)
    return RunItem(
        organization_id=deletion.organization_id,
        run=deletion,
        document=document,
        key=document.key,
        key_hash=bytes(document.key_hash),
        url=document.url or document.key if asks else "",
        title=document.title,
        epoch=document.epoch,
        stage=Stage.DONE if reason else Stage.FOUND,
        verdict=Verdict.SKIPPED if reason else "",
        reason=reason,
        error=text,
    )


def _work_here(deletion: IngestionRun) -> None:
    """One slice of it. What is left, or goes wrong, is the workers' and the sweep's."""
    try:
        for stage in ("crawl", "finish"):
            slices.work(stage, deletion.id, f"{deletion.id}:{uuid4().hex}")
    except Exception:
        log.exception("The deletion %s could not be worked with its confirmation; workers go on.", deletion.id)
    until = time.monotonic() + WAIT_SECONDS
    rows = IngestionRun.objects.filter(id=deletion.id, finished_at=None, listed_at__isnull=False)
    while rows.exists() and time.monotonic() < until:
        time.sleep(0.1)


def reject_removals(run: IngestionRun, *, actor: Actor | None = None, by: str = "") -> int:
    """Forget the plan of a braked run and start counting misses anew; returns how many documents stay, of an actor those that it sees."""
    planned = _answer(run, decision="rejected", by=by)
    stay = Document.objects.filter(id__in=planned, source_id=run.source_id, tombstoned_at=None)
    number = _seen(stay, actor).count()
    stay.update(missed_runs=0)
    return number


def count_planned(run: IngestionRun, *, actor: Actor | None = None) -> int:
    """How many documents, that the actor may see, a confirmation would look at now."""
    return planned_documents(run, actor=actor).count() if run.planned_removals else 0


def planned_documents(run: IngestionRun, *, actor: Actor | None = None) -> QuerySet[Document]:
    """Those that a confirmation would look at now, and then remove."""
    return _seen(_unseen_since(run, [UUID(value) for value in run.planned_removals]), actor)


def _seen(rows: QuerySet[Document], actor: Actor | None) -> QuerySet[Document]:
    return rows if actor is None else rows.filter(access.readable(actor))


def replace_plans(run: IngestionRun) -> int:
    """Drop the unanswered plans of earlier runs: what this complete run concluded takes their place. Returns how many."""
    earlier = IngestionRun.objects.filter(source=run.source_id, status=Status.NEEDS_CONFIRMATION, created_at__lt=run.created_at)
    return earlier.update(status=Status.SUCCEEDED, planned_removals=[], error="A later run replaced its plan of removals.")


def _require_plan(run: IngestionRun) -> None:
    if run.status != Status.NEEDS_CONFIRMATION:
        raise Conflict("This run does not wait for a confirmation.")


def _answer(run: IngestionRun, *, decision: str, by: str, deletion: IngestionRun | None = None) -> list[UUID]:
    """Take the plan exactly once, and keep who answered."""
    with transaction.atomic():
        row = IngestionRun.objects.select_for_update(no_key=True).get(id=run.id)
        _require_plan(row)
        planned = row.planned_removals
        row.status, row.planned_removals = Status.SUCCEEDED, []
        row.answer = {"decision": decision, "by": by, "at": timezone.now().isoformat(), "planned": len(planned)}
        if deletion is not None:
            row.answer |= {"run_id": str(deletion.id), "removed": None, "kept": None}
        row.save(update_fields=["status", "planned_removals", "answer"])
    return [UUID(value) for value in planned]


def _unseen_since(run: IngestionRun, planned: Sequence[UUID]) -> QuerySet[Document]:
    """Without those that are gone already, that the source showed again, or that somebody uploaded anew."""
    rows = Document.objects.filter(id__in=planned, source=run.source_id, tombstoned_at=None, seen_at__lt=run.created_at)
    return rows.exclude(file__created_at__gte=run.created_at)
