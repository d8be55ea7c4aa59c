"""The crawl stage of sources that only list: page by page, each with its cursor in one transaction."""

import time
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from config.registry import Registry
from ingestion import claims, wakes
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan, plan_for
from ingestion.refusals import stands
from ingestion.sources.base import Listed
from ingestion.stages.slices import Slice
from kb.models import Document

PAGE = 500
Stage, Verdict = RunItem.Stage, RunItem.Verdict


def work(run: IngestionRun, part: Slice) -> None:
    """List one slice's worth of the source; at the end of the list the run is `listed`."""
    if not claims.lease_run(run, part.lease):
        return  # another worker lists this run
    plan = plan_for(run)
    lister = Registry("source", settings.SOURCE_LISTERS).load(run.source.kind)
    cursor = run.crawl_state.get("after")
    while not part.is_over:
        started = time.monotonic()
        page = list(lister(run.source, after=UUID(cursor) if cursor else None, limit=PAGE))
        if page:
            cursor = str(page[-1].document.id)
        done = len(page) < PAGE
        with claims.updating(run) as row:
            if row.lease_token != part.lease:
                raise claims.ClaimLost("Another worker lists this run.")
            _add_items(row, page, plan)
            row.status = IngestionRun.Status.RUNNING
            row.started_at = row.started_at or timezone.now()
            row.crawl_state = {"after": cursor}
            row.slices_worked_seconds += time.monotonic() - started
            row.warnings = list(plan.warnings)
            row.progressed_at = timezone.now()
            row.lease_until = timezone.now() + timedelta(seconds=settings.ENV.lease_seconds)
            if done or row.slices_worked_seconds > plan.settings.time_budget_minutes * 60:
                row.listed_at = timezone.now()
                row.stop_reason = IngestionRun.StopReason.COMPLETED if done else IngestionRun.StopReason.TIME_LIMIT
            if row.listed_at or part.is_over:
                row.lease_token = row.lease_until = None
            row.save()
        part.beat()
        if page:
            wakes.wake(run.id, "extract", rows=len(page))
        if row.listed_at:
            return


def _add_items(run: IngestionRun, page: list[Listed], plan: Plan) -> None:
    items, unchanged = [], []
    for entry in page:
        item = item_for(run, entry, plan)
        items.append(item)
        if item.verdict == Verdict.UNCHANGED:
            unchanged.append(entry.document.id)
    RunItem.objects.bulk_create(items, ignore_conflicts=True)
    seen = {"missed_runs": 0, "seen_at": timezone.now(), "last_run_id": run.id, "last_error": "", "last_reason": ""}
    Document.objects.filter(id__in=unchanged).update(**seen)


def item_for(run: IngestionRun, entry: Listed, plan: Plan) -> RunItem:
    """The item (not saved) of a listed document, with its verdict if that needs no work."""
    document = entry.document
    plan = plan_for(run, entry.policy) if entry.policy else plan
    item = RunItem(
        organization_id=run.organization_id,
        run=run,
        document=document,
        key=document.key,
        key_hash=bytes(document.key_hash),
        title=document.title,
        epoch=document.epoch,
        blob_id=entry.blob_id,
        content_hash=entry.content_hash,
        size=entry.size,
        policy=entry.policy,
        stage=Stage.FETCHED,
        changed_at=timezone.now(),
    )
    same_bytes = document.content_hash is not None and bytes(document.content_hash) == entry.content_hash
    if same_bytes and document.tombstoned_at is None and is_current(document, run, plan):
        item.stage, item.verdict = Stage.DONE, Verdict.UNCHANGED
    elif document.quarantined_hash is not None and bytes(document.quarantined_hash) == entry.content_hash:
        item.stage, item.verdict, item.reason = Stage.DONE, Verdict.FAILED, "quarantined"
        item.error = "These bytes killed their worker in an earlier run. Change the file to have it tried again."
    elif stands(document, run, plan, entry.content_hash):
        item.stage, item.verdict, item.reason, item.error = Stage.DONE, Verdict.SKIPPED, document.last_reason, document.last_error
    elif same_bytes and _may_be_cut_again(document, plan):
        item.markdown_id = document.markdown_id
    return item


def _may_be_cut_again(document: Document, plan: Plan) -> bool:
    """Where only cutting or embedding changed, nothing is read again; but datasets are described for the size that they are cut to, and
    what is published of a message names its attachments."""
    same_text = document.extract_fingerprint == plan.fingerprints["extract"]
    has_files = document.metadata.get("datasets") or document.metadata.get("attachments")
    return bool(document.markdown_id and same_text and not has_files)


def is_current(document: Document, run: IngestionRun, plan: Plan) -> bool:
    """Whether what stands was made under the settings of this run."""
    return (
        document.extract_fingerprint == plan.fingerprints["extract"]
        and document.chunk_fingerprint == plan.fingerprints["chunk"]
        and document.context_fingerprint == plan.fingerprints["context"]
        and document.space_id == run.space_id
    )
