"""The end of a deletion that somebody confirmed: what it looked at again and did not find goes."""

from django.utils import timezone

from ingestion import claims
from ingestion.findings import findings_of
from ingestion.models import IngestionRun, RunItem
from ingestion.reconcile import Finding, Seen, what_was_seen
from ingestion.removal import remove_documents
from ingestion.stages.slices import Slice
from kb.models import Document

BATCH = 100


def remove_confirmed(run: IngestionRun, part: Slice) -> None:
    """Remove what the run, which asked for each planned document again, does not know to be there; may be repeated.

    Where it learned nothing (an error of the site, a page for every address) the document stays, as in any run.
    """
    found = findings_of(run)
    living = _living(run, {finding.target for finding in found.values() if finding.target})
    seen = what_was_seen({**dict.fromkeys(living, Finding("unchanged")), **found})
    rows = [(document, bytes(digest)) for document, digest in RunItem.objects.filter(run=run).values_list("document_id", "key_hash")]
    gone = [document for document, key in rows if document and _is_gone(found[key], seen[key], living)]
    for start in range(0, len(gone), BATCH):
        claims.keep(run)
        remove_documents(run, gone[start : start + BATCH])
        part.beat()
    with claims.writing(run):
        there = [document for document, key in rows if document and seen[key] == Seen.PRESENT]
        there_now = Document.objects.filter(id__in=there, source=run.source_id, tombstoned_at=None)
        there_now.update(missed_runs=0, seen_at=timezone.now(), last_run_id=run.id)
        _tell(run)


def _living(run: IngestionRun, keys: set[bytes]) -> set[bytes]:
    rows = Document.objects.filter(source=run.source_id, key_hash__in=keys, tombstoned_at=None, chunk_count__gt=0)
    return {bytes(digest) for digest in rows.values_list("key_hash", flat=True)}


def _is_gone(finding: Finding, seen: Seen, living: set[bytes]) -> bool:
    if seen == Seen.ABSENT and finding.reason == "duplicate_of":
        return finding.target in living  # what it names as the page of its content answers
    return seen in (Seen.GONE, Seen.MOVED, Seen.ABSENT)


def _tell(run: IngestionRun) -> None:
    """The run that planned it says what came of it."""
    planner = IngestionRun.objects.get(id=run.confirms_id)
    removed = RunItem.objects.filter(run=run, verdict=RunItem.Verdict.REMOVED).count()
    answer = planner.answer or {}
    told = {**answer, "removed": removed, "kept": max(0, answer.get("planned", removed) - removed)}
    IngestionRun.objects.filter(id=planner.id).update(answer=told)
