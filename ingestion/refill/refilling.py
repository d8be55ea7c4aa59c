"""The work of a change of model: stored chunks → vectors in the new space, page by page, then the switch.

One worker at a time, about twenty seconds behind one message on the queue of embedding, at the lowest priority: with runs under way the
slices alternate. Where it is comes from rows alone; a worker that is killed loses the batch in flight and no more.
"""

import logging
import time
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from config import queues
from config.errors import LecternError, PermanentProviderError
from config.tenancy import everyone, tenant
from ingestion import wakes
from ingestion.outages import insist
from ingestion.refill.part import ChangeLost, Part, Waits, writing
from ingestion.refill.paying import STAGE, pay
from ingestion.refill.texts import Sent, first_refusal, paid_vectors, texts_to_send
from kb import space_changes
from kb.embedding import provider_of
from kb.models import SpaceChange
from kb.stores.coverage import Holding, StoredText
from kb.stores.vectors import VectorRow, add_vectors

log = logging.getLogger(__name__)
State = SpaceChange.State

PAGE = 256  # chunks read, paid and written together
RETRY_SECONDS = 5.0
MAX_FAILURES = 20  # passing faults in a row, with a wait of up to a minute between two


def wake_all() -> None:
    """Wake every open change that nobody is at and that need not wait; part of the sweep."""
    for change_id in space_changes.open_changes().filter(_is_free()).values_list("id", flat=True):
        wakes.wake(change_id, STAGE)


def _is_free() -> Q:
    """Nobody is at it, and it need not wait."""
    now = timezone.now()
    return (Q(lease_until=None) | Q(lease_until__lt=now)) & (Q(not_before=None) | Q(not_before__lte=now))


def work(change_id: UUID, token: str) -> None:
    """Work one slice of the change, if nobody else does; then wake the next one."""
    with everyone():
        owner = SpaceChange.objects.filter(id=change_id).values_list("organization_id", flat=True).first()
    if owner is None:
        wakes.release(STAGE, token)
        return
    with tenant(owner):
        _work(change_id, token)


def _work(change_id: UUID, token: str) -> None:
    wakes.hold(STAGE, token)
    goes_on = False
    lease = uuid4()
    try:
        if (change := _take(change_id, lease)) is not None:
            goes_on = _slice(change, token, lease)
    finally:
        wakes.release(STAGE, token)
    if goes_on:
        wakes.wake(change_id, STAGE)


def _take(change_id: UUID, lease: UUID) -> SpaceChange | None:
    until = timezone.now() + timedelta(seconds=settings.ENV.lease_seconds)
    # Of its own columns alone: a condition on another table would not be looked at again after waiting for whoever was first.
    if not SpaceChange.objects.filter(_is_free(), id=change_id, state__in=SpaceChange.OPEN).update(lease_token=lease, lease_until=until):
        return None
    related = ("from_space__embedding_model", "to_space__embedding_model")
    return SpaceChange.objects.select_related(*related).get(id=change_id)


def _slice(change: SpaceChange, token: str, lease: UUID) -> bool:
    """Whether the change goes on at once."""
    try:
        if change.to_space.provisioned_at is None:
            raise Waits(RETRY_SECONDS)  # the sweep attaches its partition
        spec, provider = provider_of(
            change.to_space.embedding_model, organization_id=change.organization_id, threads=settings.ENV.embed_threads or None
        )
        there = Holding(change.organization_id, change.knowledge_base_id, change.to_space)
        return _fill(Part(change, token, lease, spec, provider, there))
    except ChangeLost:
        log.info("Change %s is not ours any more; its slice ends.", change.id)
        return False
    except Waits as wait:
        _put_off(change, lease, wait)
        return False
    except LecternError as error:
        if error.transient:
            _put_off(change, lease, Waits(RETRY_SECONDS, error.message))
        else:
            space_changes.fail(change, lease=lease, error=error.message, reason=str(error.extra.get("reason", "embedding_failed")))
        return False
    except Exception as error:
        insist(partial(_put_off, change, lease, Waits(RETRY_SECONDS, f"It stopped with {type(error).__name__}: {error}")))
        raise
    finally:
        insist(lambda: SpaceChange.objects.filter(id=change.id, lease_token=lease).update(lease_token=None, lease_until=None))


def _put_off(change: SpaceChange, lease: UUID, wait: Waits) -> None:
    failures = change.failures + 1 if wait.error else change.failures
    if failures >= MAX_FAILURES:
        space_changes.fail(change, lease=lease, error=f"It failed {MAX_FAILURES} times in a row. {wait.error}")
        return
    seconds = max(wait.seconds, min(60.0, 0.5 * 2**failures)) if wait.error else wait.seconds
    told = {"error": wait.error[:2000], "failures": failures} if wait.error else {}
    SpaceChange.objects.filter(id=change.id, lease_token=lease, state__in=SpaceChange.OPEN).update(
        not_before=timezone.now() + timedelta(seconds=seconds), **told
    )


def _fill(part: Part) -> bool:
    while not part.is_over:
        page = _next_page(part)
        if page:
            _do_page(part, page)
        elif part.change.cursor and part.change.until is None:
            _begin_pass(part)
        else:
            return _conclude(part)
    return True


def _next_page(part: Part) -> list[StoredText]:
    change = part.change
    limit = min(PAGE, max(1, int(settings.ENV.reembed_rate))) if settings.ENV.reembed_rate else PAGE
    if change.until is not None:
        return part.there.stored(after=change.cursor, until=change.until, limit=limit)
    return part.there.lacking(after=change.cursor, limit=limit)


def _begin_pass(part: Part) -> None:
    """Look again from the first chunk: what was busy or came out of order was left behind. A whole pass for nothing is a wait."""
    if part.fresh_pass and not part.written_in_pass:
        raise Waits(RETRY_SECONDS)
    part.change.cursor, part.fresh_pass, part.written_in_pass = 0, True, 0


def _do_page(part: Part, page: list[StoredText]) -> None:
    started = time.monotonic()
    change = part.change
    last = page[-1].chunk
    if _is_the_same_model(change) and _copy(part, page, last):
        return
    sent = texts_to_send(page, part.spec)
    computed, all_tried = pay(part, sent)
    vectors = paid_vectors(*part.texts.values(), [each.digest for each in sent])
    if all_tried and (refused := first_refusal(*part.texts.values(), [each.digest for each in sent])):
        raise PermanentProviderError(_refusal(page, sent, refused))
    ready = [each for each in sent if each.digest in vectors]
    moves_on = all_tried and (change.until is None or len(ready) == len(sent))
    rows = [VectorRow(each.chunk, vectors[each.digest]) for each in ready]
    too_long = sum(each.cut for each in ready)
    seconds = time.monotonic() - started
    _write(part, rows, seconds=seconds, cursor=last if moves_on else change.cursor, computed=computed, too_long=too_long)
    if change.until is not None and all_tried and not moves_on:
        raise Waits(RETRY_SECONDS)  # somebody else is paying for some of them
    if settings.ENV.reembed_rate and (early := len(rows) / settings.ENV.reembed_rate - seconds) > 0:
        raise Waits(early)  # other work has the worker meanwhile


def _is_the_same_model(change: SpaceChange) -> bool:
    """Provider, model, dimension and settings are equal: only the registration is another."""
    return not change.is_in_place and change.from_space is not None and change.from_space.fingerprint == change.to_space.fingerprint


def _copy(part: Part, page: list[StoredText], last: int) -> bool:
    with writing(part) as change:
        copied = part.there.copy_from(change.from_space, [each.chunk for each in page])
        change.filled += copied
        change.cursor = last if copied else change.cursor
        change.save(update_fields=["filled", "cursor"])
    part.change.cursor = change.cursor
    part.written_in_pass += copied
    return bool(copied)


def _refusal(page: list[StoredText], sent: list[Sent], refused: tuple[bytes, str, int]) -> str:
    digest, error, number = refused
    chunk = next(each.chunk for each in sent if each.digest == digest)
    title = next(each.title for each in page if each.chunk == chunk)
    what = "a passage" if number == 1 else f"{number} passages, such as one"
    return f"The model cannot embed {what} of “{title}”: {error} Change or remove the document, then re-embed."


def _write(part: Part, rows: list[VectorRow], *, seconds: float, cursor: int, computed: int, too_long: int) -> None:
    """Vectors of a page with its cursor, committed together. A chunk that is being deleted right now is passed by."""
    with writing(part) as change:
        with connection.cursor() as sql:
            sql.execute("SELECT id FROM kb_chunk WHERE id = ANY(%s) FOR KEY SHARE SKIP LOCKED", [[row.chunk for row in rows]])
            kept = {row[0] for row in sql.fetchall()}
        rows = [row for row in rows if row.chunk in kept]
        scope = {"organization": change.organization_id, "knowledge_base": change.knowledge_base_id}
        add_vectors(**scope, space=part.there.space, rows=rows)
        speed = len(rows) / max(seconds, 0.001)
        change.per_second = speed if not change.per_second else 0.8 * change.per_second + 0.2 * speed
        change.filled, change.computed, change.too_long = change.filled + len(rows), change.computed + computed, change.too_long + too_long
        change.cursor, change.failures, change.error, change.not_before = cursor, 0, "", None
        change.save()
    part.change.cursor, part.change.failures = cursor, 0
    part.written_in_pass += len(rows)


def _conclude(part: Part) -> bool:
    """Switch, if nothing is missing and searches there are quick. What was published meanwhile is filled first."""
    with space_changes.locked(part.change.id, lease=part.lease) as held:
        if held is None:
            raise ChangeLost("This change of the embedding model is not under way any more.")
        knowledge_base, change = held
        waits = not change.is_in_place and part.there.needs_index()
        if not waits and space_changes.switch(knowledge_base, change):
            log.info("%s answers from the model %s.", knowledge_base, change.to_model)
            return False
        change.state = State.SWITCHING if waits else State.FILLING
        change.filled_at = (change.filled_at or timezone.now()) if waits else None
        change.cursor, change.until = 0, None
        change.save(update_fields=["state", "filled_at", "cursor", "until"])
    part.change.cursor, part.change.until = 0, None
    if waits:
        queues.nudge("ingestion.housekeep")  # builds the index
        raise Waits(RETRY_SECONDS)
    return True
