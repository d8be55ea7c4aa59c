"""Taking items of a run: short leases, no open transactions, and an end for those that kill their workers or stop our code."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from ingestion import claims
from ingestion.models import IngestionRun, RunItem
from ingestion.outages import insist, is_passing
from ingestion.rows import update_rows
from kb.models import Document

Stage, Verdict = RunItem.Stage, RunItem.Verdict
MAX_ATTEMPTS = 3
MAX_FAILURES = 5
RETRY_SECONDS = 2.0  # after a fault; twice as long each time
RUN_RETRY_SECONDS = 10.0

# Materialised: a subquery that is joined may be worked once for each row of the other side, and then its limit is none.
_TAKE = """
    WITH free AS MATERIALIZED (
        SELECT id FROM ingestion_runitem
         WHERE run_id = %(run)s AND stage = %(stage)s
           AND (not_before IS NULL OR not_before <= now())
           AND (lease_until IS NULL OR lease_until < now())
           AND (%(depth)s::int IS NULL OR depth = %(depth)s::int)
           AND NOT EXISTS (SELECT 1 FROM unnest(%(without)s::text[]) host WHERE starts_with(url, host || '/'))
         ORDER BY depth, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
    UPDATE ingestion_runitem item
       SET lease_token = %(token)s, lease_until = now() + %(lease)s, attempts = item.attempts + 1
      FROM free
     WHERE item.id = free.id
 RETURNING item.id
"""

# Asked at each slice and by each sweep: more items than wake every worker are not counted.
COUNTED = 1000
_OPEN_STAGES = """
    SELECT open.stage, CASE open.stage WHEN 'parted' THEN sum(item.parts) ELSE count(*) END
      FROM unnest(%(stages)s::text[]) AS open (stage),
           LATERAL (SELECT parts FROM ingestion_runitem
                     WHERE run_id = %(run)s AND stage = open.stage AND stage <> 'done'
                       AND (not_before IS NULL OR not_before <= now()) AND (lease_until IS NULL OR lease_until < now())
                     LIMIT %(most)s) item
     GROUP BY open.stage
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an item ended."""

    verdict: str
    reason: str = ""
    error: str = ""


def take(
    run: IngestionRun,
    stage: str,
    *,
    token: UUID,
    limit: int,
    related: Sequence[str],
    depth: int | None = None,
    without: Sequence[str] = (),
) -> list[RunItem]:
    """Lease the next free items of a stage (of one depth, and of no host `without`), in the order they were found, with their `related`
    rows; `token` is the slice's.

    An item that was taken three times and never given back killed its worker each time: it is failed here, and its bytes
    are remembered so that the next run does not try them again. An item that had company when its worker died, or when its
    slice stopped, is taken alone afterwards, so that one bad file does not fail its neighbours.
    """
    with claims.writing(run), connection.cursor() as cursor:
        lease = timedelta(seconds=settings.ENV.lease_seconds)
        cursor.execute(
            _TAKE, {"token": token, "lease": lease, "run": run.id, "stage": stage, "limit": limit, "depth": depth, "without": list(without)}
        )
        taken = [row[0] for row in cursor.fetchall()]
    rows = RunItem.objects.filter(id__in=taken).order_by("depth", "id")
    items = list(rows.select_related(*related) if related else rows)  # without names it would follow every key there is
    suspects = [item for item in items if item.attempts > 1 or item.failures]
    if suspects and len(items) > 1:
        give_back([item for item in items if item is not suspects[0]])
        items = suspects[:1]
    for item in [item for item in items if item.attempts > MAX_ATTEMPTS]:
        _bury(run, item)
    return [item for item in items if item.attempts <= MAX_ATTEMPTS]


def _bury(run: IngestionRun, item: RunItem) -> None:
    with claims.writing(run):
        if own(run, [item]):
            close(item, Outcome(Verdict.FAILED, "worker_died", f"Its worker died {MAX_ATTEMPTS} times. Change the file, or look at it."))
            if item.document_id and item.content_hash:
                Document.objects.filter(id=item.document_id).update(quarantined_hash=item.content_hash)


def own(run: IngestionRun, items: Sequence[RunItem]) -> list[RunItem]:
    """Lock those of the items whose lease is still ours, in the order of their ids; inside `claims.writing`."""
    rows = RunItem.objects.select_for_update(no_key=True).filter(id__in=[item.id for item in items]).order_by("id")
    held = dict(rows.values_list("id", "lease_token"))
    return [item for item in items if held.get(item.id) == item.lease_token]


def lock_stage(item: RunItem, stage: str) -> bool:
    """Lock an item that nobody leases, and say whether it still stands in the stage; inside `claims.writing`."""
    return RunItem.objects.select_for_update(no_key=True).filter(id=item.id, stage=stage, lease_token=None).exists()


def close_superseded(run: IngestionRun, items: Sequence[RunItem]) -> None:
    """End items whose document is gone or was claimed by somebody else meanwhile; inside `claims.writing`."""
    late = "The document was deleted or replaced while this was under way."
    close_all(own(run, items), Outcome(Verdict.SKIPPED, "superseded", late))


def advance(stage: str, moves: Sequence[tuple[RunItem, Mapping[str, object]]]) -> None:
    """Move items on, each with values of its own for the same fields, and free their leases; inside `claims.writing`, after `own`."""
    freed = {"stage": stage, "lease_token": None, "lease_until": None, "attempts": 0, "failures": 0, "not_before": None}
    freed["changed_at"] = timezone.now()
    update_rows(RunItem, [(item.id, {**freed, **values}) for item, values in moves])


def close(item: RunItem, outcome: Outcome) -> None:
    """Give the item its verdict, and its document the error."""
    if outcome.verdict == Verdict.FAILED and item.document_id:
        Document.objects.filter(id=item.document_id, epoch=item.epoch).update(
            last_error=outcome.error[:2000], last_reason=outcome.reason[:40]
        )
    close_all([item], outcome)


def close_all(items: Sequence[RunItem], outcome: Outcome, *, documents: Mapping[int, Document] | None = None) -> None:
    """One verdict for several items; what only the work needed is dropped. `documents` names those that were made for items."""
    values = {
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "error": outcome.error[:2000],
        "passages": None,
        "text_hashes": None,
        "extracted": None,
    }
    named = documents or {}
    advance(Stage.DONE, [(item, {**values, "document": named.get(item.id, item.document_id)}) for item in items])


def postpone(item: RunItem, seconds: float, error: str) -> None:
    """Give the item back after a passing fault; that was no death of a worker, so it does not count as an attempt."""
    RunItem.objects.filter(id=item.id, lease_token=item.lease_token).update(
        lease_token=None,
        lease_until=None,
        attempts=max(0, item.attempts - 1),
        failures=item.failures,
        not_before=timezone.now() + timedelta(seconds=seconds),
        error=error[:2000],
    )


def put_back(run: IngestionRun, token: UUID, error: Exception) -> int:
    """Give back what a slice held when it stopped with an error; how many items.

    Nobody died, so it counts as no attempt. A service that was away counts as nothing at all; an error of ours is counted,
    and ends the item at last, with the error in words.
    """
    return insist(lambda: _put_back(run, token, error))


def _put_back(run: IngestionRun, token: UUID, error: Exception) -> int:
    words = f"{type(error).__name__}: {error}"
    with claims.writing(run):
        held = RunItem.objects.select_for_update(no_key=True).filter(run=run, lease_token=token).exclude(stage=Stage.DONE)
        for item in (items := list(held.order_by("id"))):
            item.failures += not is_passing(error)
            if item.failures >= MAX_FAILURES:
                message = (
                    f"Working on it stopped {MAX_FAILURES} times with {words}. Please report it; what stood here before still answers."
                )
                close(item, Outcome(Verdict.FAILED, "internal", message))
            else:
                postpone(item, RETRY_SECONDS * 2 ** max(0, item.failures - 1), words)
    # Whoever lists or finishes holds the run itself; its stage is tried again soon, and not at once.
    soon = timezone.now() + timedelta(seconds=RUN_RETRY_SECONDS)
    IngestionRun.objects.filter(id=run.id, lease_token=token, finished_at=None).update(lease_until=soon)
    return len(items)


def give_back(items: Iterable[RunItem]) -> None:
    """Free what was taken and not worked; no attempt either."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ingestion_runitem item SET lease_token = NULL, lease_until = NULL, attempts = greatest(item.attempts - 1, 0)"
            " FROM (SELECT id FROM ingestion_runitem WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE) mine"
            " WHERE item.id = mine.id AND item.lease_token = ANY(%s)",
            [[item.id for item in items], [item.lease_token for item in items]],
        )


def open_stages(run_id: UUID) -> dict[str, int]:
    """How many items of a run stand in each open stage and could be taken now, up to COUNTED; of those with parts, how many parts."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN_STAGES, {"run": run_id, "stages": [stage for stage in Stage if stage != Stage.DONE], "most": COUNTED})
        return dict(cursor.fetchall())


def has_open(run: IngestionRun) -> bool:
    return RunItem.objects.filter(run=run).exclude(stage=Stage.DONE).exists()
