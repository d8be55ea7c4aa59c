"""Who may write for a source. Only this module knows both locks.

| lock | guards | truth? |
|---|---|---|
| unique index `run_claims_source` (one open run a source) | that two runs never write the same source | yes |
| Redis key `run:{source}` (the claim token, with a lease) | the index from a storm of attempts | no: a quick gate |
| run row `FOR SHARE`, with the claim token | every write of an item against reaping and cancelling | yes |
| source row `FOR SHARE`, while a run is opened | a claim against a publication that removes, retypes or disables | yes |
| `document.epoch` | pushed work on one document against each other and against deletion | yes |

Lock order: knowledge base → source → run → item → document → chunk.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from redis.exceptions import RedisError

from config.errors import Conflict, LecternError, NotFound
from config.redis import redis_client
from ingestion.counters import count_items
from ingestion.models import IngestionRun, ProviderCall, RunItem, ScheduleFire
from kb.models import EmbeddingSpace, KnowledgeBaseVersion, Source, User

log = logging.getLogger(__name__)

Kind, Status = IngestionRun.Kind, IngestionRun.Status


class ClaimLost(LecternError):
    """The run was cancelled, reaped or superseded: whoever holds this stops and writes nothing."""

    code = "claim_lost"
    status = 409


class Busy(Conflict):
    """Another run holds the source."""


class JustEnded(Conflict):
    """The run in the way ended between two looks: trying again helps."""

    transient = True


def _gate_key(source_id: object) -> str:
    return f"lectern:run:{source_id}"


def _open_gate(source_id: object, token: object) -> bool:
    """True if the gate let us through, also when it cannot be asked: the insert decides."""
    try:
        return bool(redis_client().set(_gate_key(source_id), str(token), nx=True, ex=ceil(settings.ENV.lease_seconds)))
    except RedisError as error:
        log.warning("The gate of source %s could not be asked (%s); the database decides.", source_id, error)
        return True


def renew_gate(run: IngestionRun) -> None:
    """The heartbeat of a run's gate; called by whoever works for it."""
    if run.kind == Kind.PUSH:
        return
    try:
        redis_client().set(_gate_key(run.source_id), str(run.claim_token), ex=ceil(settings.ENV.lease_seconds))
    except RedisError:
        log.debug("The gate of source %s could not be renewed.", run.source_id)


def _close_gate(run: IngestionRun) -> None:
    try:
        client = redis_client()
        if client.get(_gate_key(run.source_id)) == str(run.claim_token).encode():
            client.delete(_gate_key(run.source_id))
    except RedisError:
        log.debug("The gate of source %s could not be closed; it expires by itself.", run.source_id)


def open_run(source: Source) -> IngestionRun | None:
    """The run that holds the source, if any."""
    return IngestionRun.objects.filter(source=source, finished_at=None).exclude(kind=Kind.PUSH).first()


def _busy(run: IngestionRun) -> Busy:
    what = "A purge or deletion" if run.kind == Kind.MAINTENANCE else "A run"
    return Busy(
        f"{what} of this source is under way since {run.created_at:%Y-%m-%d %H:%M:%S} UTC. Wait for it, or cancel it.",
        run_id=str(run.id),
        started_at=run.created_at.isoformat(),
    )


def hold_source(source_id: UUID) -> Source | None:
    """The source as it is now, held until the transaction ends against a publication that changes it; None if it has left."""
    rows = Source.objects.raw("SELECT * FROM kb_source WHERE id = %s AND state = %s FOR SHARE", [source_id, Source.State.ACTIVE])
    return next(iter(rows), None)


def claim(
    source: Source,
    *,
    kind: str = Kind.INGEST,
    trigger: str = IngestionRun.Trigger.MANUAL,
    version: KnowledgeBaseVersion | None,
    space: EmbeddingSpace | None,
    user: User | None = None,
    by: str = "",
    **values: object,
) -> IngestionRun:
    """Open a run and with it claim the source. Raises `Busy` naming the run that holds it, `NotFound` if the source has left.

    A dead run is reaped first. Pushes claim no source. Call it outside a transaction, or lose it with that transaction.
    """
    token = uuid4()
    if kind != Kind.PUSH:
        reap_dead(source)
        if not _open_gate(source.id, token) and (holder := open_run(source)):
            raise _busy(holder)
    try:
        with transaction.atomic():
            held = hold_source(source.id)
            if held is None:
                raise NotFound()
            if held.kind != source.kind:
                raise Conflict(f"The source '{held.name}' has just become one of type {held.kind}. Look at it, then try again.")
            run = IngestionRun.objects.create(
                organization_id=source.organization_id,
                knowledge_base_id=source.knowledge_base_id,
                source=source,
                version=version,
                space=space,
                kind=kind,
                trigger=trigger,
                requested_by=user,
                requested_name=by[:300],
                claim_token=token,
                **values,
            )
    except IntegrityError as error:
        if "run_claims_source" not in str(error):
            raise
        holder = open_run(source)
        if holder is None:  # it ended between the insert and the look
            raise JustEnded("Another run of this source ended just now. Try again.") from error
        raise _busy(holder) from error
    renew_gate(run)
    return run


def _held(run: IngestionRun) -> QuerySet[IngestionRun]:
    """The run's row, if it still holds its source and the source is still there."""
    return IngestionRun.objects.filter(id=run.id, claim_token=run.claim_token, finished_at=None, source__state=Source.State.ACTIVE)


@contextmanager
def writing(run: IngestionRun, *, lease: UUID | None = None) -> Iterator[None]:
    """A transaction that may write for the run: it holds the run row against being closed. Raises `ClaimLost`.

    With `lease`, only while that is the one on the run as a whole (`lease_run`). Never update the run row inside: an update
    after the share lock deadlocks with another writer's.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT run.lease_token FROM ingestion_ingestionrun run JOIN kb_source source ON source.id = run.source_id"
                " WHERE run.id = %s AND run.claim_token = %s AND run.finished_at IS NULL AND source.state = %s FOR SHARE OF run",
                [run.id, run.claim_token, Source.State.ACTIVE],
            )
            held = cursor.fetchone()
            if held is None or (lease is not None and held[0] != lease):
                raise ClaimLost("This run no longer holds its source.")
        yield


@contextmanager
def updating(run: IngestionRun) -> Iterator[IngestionRun]:
    """A transaction that may update the run row itself (the listing's cursor, the closing). Raises `ClaimLost`."""
    with transaction.atomic():
        row = _held(run).select_for_update(no_key=True, of=("self",)).first()
        if row is None:
            raise ClaimLost("This run no longer holds its source.")
        yield row


def lease_run(run: IngestionRun, token: UUID) -> bool:
    """Be the only one who lists or crawls the run; False if somebody else is, or if it is listed. Refreshes the run's cursor."""
    with updating(run) as row:
        if row.listed_at or (row.lease_until and row.lease_until > timezone.now()):
            return False
        row.lease_token = token
        row.lease_until = timezone.now() + timedelta(seconds=settings.ENV.lease_seconds)
        row.save(update_fields=["lease_token", "lease_until"])
        run.crawl_state, run.slices_worked_seconds = row.crawl_state, row.slices_worked_seconds
    return True


def keep(run: IngestionRun) -> bool:
    """Renew the lease of who works on the run as a whole, between two of its transactions; False if the claim is lost."""
    renew_gate(run)
    until = timezone.now() + timedelta(seconds=settings.ENV.lease_seconds)
    return bool(_held(run).update(lease_until=until))


def free(run: IngestionRun) -> None:
    """Give up a lease on the run as a whole before its time."""
    IngestionRun.objects.filter(id=run.id, claim_token=run.claim_token, finished_at=None).update(lease_token=None, lease_until=None)


def check(run: IngestionRun) -> bool:
    """Whether the run still holds its claim; a cheap look before something slow."""
    return _held(run).exists()


def finish(run: IngestionRun, *, status: str, stop_reason: str, error: str = "", **values: object) -> bool:
    """Close the run and free its source, with further `values` of its row; False if somebody else closed it first. Counters are the
    aggregates of its items."""
    now = timezone.now()
    with transaction.atomic():
        changed = IngestionRun.objects.filter(id=run.id, claim_token=run.claim_token, finished_at=None).update(
            status=status,
            stop_reason=stop_reason,
            error=error,
            finished_at=now,
            progressed_at=now,
            lease_token=None,
            lease_until=None,
            counters=count_items(run),
            **values,
        )
        if changed:
            transaction.on_commit(lambda: _close_gate(run))
            if status == Status.FAILED:
                _log_failure(run, error)
    return bool(changed)


def _log_failure(run: IngestionRun, error: str) -> None:
    """The fire that started the run gets a second entry: the first only says that it began."""
    for fire in ScheduleFire.objects.filter(run=run, outcome=ScheduleFire.Outcome.STARTED):
        ScheduleFire.objects.create(
            organization_id=fire.organization_id,
            source_id=fire.source_id,
            due_at=fire.due_at,
            outcome=ScheduleFire.Outcome.FAILED,
            run=run,
            error=error,
            follows=fire,
        )


def cancel(run: IngestionRun, *, why: str = "Cancelled by a person") -> bool:
    """End a run that somebody stops or whose source is gone; what it has published stays."""
    return finish(run, status=Status.CANCELLED, stop_reason=IngestionRun.StopReason.CANCELLED, error=why)


def last_progress(run: IngestionRun) -> datetime:
    """When the run last committed anything: of itself, of an item, or vectors (a large document waits long for its last one)."""
    item = RunItem.objects.filter(run=run).aggregate(at=Max("changed_at"))["at"]
    paid = ProviderCall.objects.filter(run=run, error="").aggregate(at=Max("received_at"))["at"]
    return max(filter(None, (run.progressed_at, item, paid)))


def reap_dead(source: Source) -> list[IngestionRun]:
    """Close the source's runs that made no progress while workers could have advanced them, or outlived the absolute cap.

    `eligible_since` is kept by the sweep: a run that waits (no free worker, a pausing provider) is never dead. Where the sweep has not
    looked for a while everything was down, and the row says how it was before that: nobody is dead by it.
    """
    now = timezone.now()
    reaped = []
    for run in IngestionRun.objects.filter(source=source, finished_at=None):
        too_old = now - run.created_at > timedelta(hours=settings.ENV.max_run_hours)
        is_watched = run.eligible_at is None or now - run.eligible_at <= timedelta(seconds=settings.ENV.dead_run_seconds / 4)
        before = now - timedelta(seconds=settings.ENV.dead_run_seconds)
        # Its items are looked at only where it could be dead: the sweep asks this of every open run.
        idle = is_watched and run.eligible_since is not None and run.eligible_since < before and last_progress(run) < before
        error = f"Run abandoned. {run.error}" if run.error else "Run abandoned"
        if (too_old or idle) and finish(run, status=Status.FAILED, stop_reason="", error=error):
            reaped.append(run)
    return reaped
