"""The finish stage: what the run means for documents that it did not see, and its outcome. Repeated by the sweep until it is done."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from config.errors import Conflict, NotFound
from ingestion import claims
from ingestion.findings import findings_of
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import plan_for
from ingestion.reconcile import (
    SAYS_GONE,
    Action,
    Coverage,
    Known,
    Reconciliation,
    Seen,
    Settings,
    hidden_from_view,
    reconcile,
    what_was_seen,
)
from ingestion.removal import remove_documents
from ingestion.services.removals import replace_plans
from ingestion.services.runs import start_run
from ingestion.sources.web import pages
from ingestion.sources.web.state import SiteState
from ingestion.stages.confirmed import remove_confirmed
from ingestion.stages.items import has_open
from ingestion.stages.slices import Slice
from kb.models import Document, Source

Status, StopReason, Verdict = IngestionRun.Status, IngestionRun.StopReason, RunItem.Verdict
# The start page of a site, where the site says that it is gone.
NO_START = Q(via=RunItem.Via.START) & (Q(reason__in=SAYS_GONE) | Q(verdict=Verdict.REMOVED))
REMOVAL_BATCH = 100
WAY_STEPS = 20  # redirects and lists that are not indexed, between a document and the one that led to it

_WAYS = """
    WITH RECURSIVE way (item, hashes, goes_on, next, step) AS (
        SELECT id, ''::bytea, true, found_on, 0 FROM ingestion_runitem WHERE run_id = %(run)s AND verdict IN ('ingested', 'unchanged')
         UNION ALL
        SELECT way.item, way.hashes || page.key_hash, page.verdict NOT IN ('ingested', 'unchanged'), page.found_on, way.step + 1
          FROM way JOIN ingestion_runitem page ON page.id = way.next WHERE way.goes_on AND way.step < %(steps)s)
    UPDATE kb_document document SET parent_hash = nullif(whole.hashes, '')
      FROM (SELECT DISTINCT ON (item) item, hashes FROM way ORDER BY item, step DESC) whole
      JOIN ingestion_runitem item ON item.id = whole.item
     WHERE document.source_id = %(source)s AND document.key_hash = item.key_hash
       AND document.parent_hash IS DISTINCT FROM nullif(whole.hashes, '')
"""


def work(run: IngestionRun, part: Slice) -> None:
    """Conclude and close the run, once no item is open. Exactly once: the closing is one conditional update."""
    if not _take_lease(run, part.lease):
        return
    if run.source.kind == Source.Kind.WEB and pages.reopen_deferred(run):
        claims.free(run)
        return
    decided = _reconcile(run) if run.kind == IngestionRun.Kind.INGEST else None
    if decided is not None:
        _apply(run, decided, part)
        if run.source.kind == Source.Kind.WEB:
            _remember_parents(run)
    if run.confirms_id:
        remove_confirmed(run, part)
    totals = RunItem.objects.filter(run=run).aggregate(
        failed=Count("id", filter=Q(verdict=Verdict.FAILED)),
        usable=Count("id", filter=Q(verdict__in=(Verdict.INGESTED, Verdict.UNCHANGED))),
        removed=Count("id", filter=Q(verdict=Verdict.REMOVED)),
        limited=Count("id", filter=Q(reason="segment_limit")),
        unpaid=Count("id", filter=Q(reason="budget_exhausted")),
        skipped=Count("id", filter=Q(verdict=Verdict.SKIPPED)),
        startless=Count("id", filter=NO_START),
    )
    status = _status(totals, braked=bool(decided and decided.braked))
    stop_reason = _stop_reason(run, totals)
    if status == Status.FAILED and stop_reason == StopReason.COMPLETED:
        stop_reason = ""  # it came to its end and has nothing: that is no completion
    error = "" if status != Status.FAILED else _first_error(run)
    plan = [str(identifier) for identifier in decided.removals] if decided and decided.braked else []
    warnings = [*run.warnings, _braked(run, decided)] if plan else run.warnings
    # Together: a worker that is killed in between must not leave what follows undone.
    with transaction.atomic():
        if claims.finish(run, status=status, stop_reason=stop_reason, error=error, planned_removals=plan, warnings=warnings):
            if decided is not None and decided.concludes:
                replace_plans(run)
            _run_again(run)


def _take_lease(run: IngestionRun, token: UUID) -> bool:
    with claims.updating(run) as row:
        if row.listed_at is None or has_open(row) or (row.lease_until and row.lease_until > timezone.now()):
            return False
        row.lease_token = token
        row.lease_until = timezone.now() + timedelta(seconds=settings.ENV.lease_seconds)
        row.save(update_fields=["lease_token", "lease_until"])
        run.stop_reason, run.listed_at, run.crawl_state, run.warnings = row.stop_reason, row.listed_at, row.crawl_state, row.warnings
    return True


def _stop_reason(run: IngestionRun, totals: dict[str, int]) -> str:
    if totals["unpaid"]:
        return StopReason.BUDGET_EXHAUSTED
    return StopReason.SEGMENT_LIMIT if totals["limited"] else run.stop_reason or StopReason.COMPLETED


def _status(totals: dict[str, int], *, braked: bool) -> str:
    """An address that the site says is gone is no failure; a start page that is gone, where nothing else was found, is one."""
    if braked:
        return Status.NEEDS_CONFIRMATION
    if totals["startless"] and not totals["usable"]:
        return Status.FAILED
    if not totals["failed"]:
        return Status.SUCCEEDED
    if totals["failed"] == totals["unpaid"]:
        return Status.PARTIAL  # it did what it was allowed to pay for
    return Status.PARTIAL if totals["usable"] or totals["skipped"] or totals["removed"] else Status.FAILED


def _braked(run: IngestionRun, decided: Reconciliation) -> str:
    living = Document.objects.filter(source=run.source_id, tombstoned_at=None).count()
    return (
        f"It would remove {len(decided.removals):,} of {living:,} documents, more than settings.max_deletion_share allows unasked, so it "
        "removed none. Look at them, then confirm or reject."
    )


def _first_error(run: IngestionRun) -> str:
    at_fault = RunItem.objects.filter(Q(verdict=Verdict.FAILED) | NO_START, run=run)
    return at_fault.order_by("id").values_list("error", flat=True).first() or ""


def _reconcile(run: IngestionRun) -> Reconciliation:
    """Compare the source's documents with what this run saw of them."""
    seen = what_was_seen(findings_of(run))
    known = Document.objects.filter(source=run.source, created_at__lte=run.listed_at)
    site = SiteState(**run.crawl_state) if run.source.kind == Source.Kind.WEB else SiteState()
    return conclude(run, known, seen, completed=run.stop_reason == StopReason.COMPLETED, site=site)


def conclude(
    run: IngestionRun, known: QuerySet[Document], seen: Mapping[bytes, Seen], *, completed: bool, site: SiteState
) -> Reconciliation:
    """What a run, or the preview of one, that saw this much of its source means for the documents that are known of it."""
    rows = list(known.values_list("id", "key_hash", "parent_hash", "missed_runs", "tombstoned_at", "last_run_id"))
    hidden = hidden_from_view({bytes(digest): _hashes(way) for _, digest, way, *_ in rows}, seen)
    documents = []
    for identifier, digest, _, missed, tombstoned, last_run in rows:
        key = bytes(digest)
        found = Seen.UNKNOWN if key in hidden else seen.get(key, Seen.ABSENT)
        # A finish that was cut off has counted this run's miss already: two attempts are still one run.
        counted = last_run == run.id and found in (Seen.ABSENT, Seen.GONE)
        documents.append(Known(identifier, max(0, missed - counted), tombstoned is not None, found))
    verdicts = Counter(seen.values())
    limits = plan_for(run).settings
    return reconcile(
        documents,
        coverage=Coverage(
            completed=completed,
            sitemaps_whole=site.sitemaps_whole,
            answers_everything=site.same_for_all,
            # An empty upload source is known to be empty: the list is ours.
            usable=verdicts[Seen.PRESENT] + (run.source.kind in (Source.Kind.UPLOAD, Source.Kind.CHANNEL)),
            definitive=verdicts[Seen.GONE],
        ),
        settings=Settings(limits.tombstone_after_missed_runs, limits.max_deletion_share),
    )


def _hashes(way: bytes | None) -> list[bytes]:
    joined = bytes(way or b"")
    return [joined[start : start + 16] for start in range(0, len(joined), 16)]


def _remember_parents(run: IngestionRun) -> None:
    """Keep which pages led to each document, for the day on which one of them cannot be read: back to the nearest document."""
    with claims.writing(run), connection.cursor() as cursor:
        cursor.execute(_WAYS, {"run": run.id, "source": run.source_id, "steps": WAY_STEPS})


def _apply(run: IngestionRun, decided: Reconciliation, part: Slice) -> None:
    by_action: dict[Action, list[UUID]] = {action: [] for action in Action}
    for decision in decided.decisions:
        by_action[decision.action].append(decision.document)
    for action, value in ((Action.RESET, 0), (Action.MISS, None)):
        ids = by_action[action]
        for start in range(0, len(ids), 1000):
            with claims.writing(run):
                for document in Document.objects.select_for_update(no_key=True).filter(id__in=ids[start : start + 1000]).order_by("id"):
                    # A repeated finish must not count a miss twice: the row remembers the run that looked.
                    if action == Action.MISS and document.last_run_id == run.id:
                        continue
                    document.missed_runs = document.missed_runs + 1 if value is None else value
                    document.last_run_id = run.id
                    document.save(update_fields=["missed_runs", "last_run_id"])
    removals = by_action[Action.REMOVE]
    for start in range(0, len(removals), REMOVAL_BATCH):
        remove_documents(run, removals[start : start + REMOVAL_BATCH])
        part.beat()


def _run_again(run: IngestionRun) -> None:
    """A file that came or changed while the run was under way is in no item of it: another run follows. By the rows and not by times:
    an upload may be committed after the listing that it began before."""
    if run.kind != IngestionRun.Kind.INGEST or run.stop_reason != StopReason.COMPLETED:
        return
    if run.source.kind == Source.Kind.CHANNEL:
        return  # each upload there is a push of its own
    listed = RunItem.objects.filter(run=run, document_id=OuterRef("id"), epoch=OuterRef("epoch"))
    if Document.objects.filter(source=run.source_id, file__isnull=False).exclude(Exists(listed)).exists():
        with suppress(Conflict, NotFound):  # disabled or removed meanwhile, or somebody was quicker
            start_run(run.source, trigger=IngestionRun.Trigger.CHANGE)
