"""The outbox of points that have to leave external stores: a row is there before a point can be left over, and goes with the point.

Chunks that are deleted note their points by a trigger. Points that are written for chunks which do not stand yet are noted before
(`stage`), and crossed out by the transaction in which the chunks come to be (`settle`).
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q
from django.utils import timezone

from config.errors import LecternError
from kb import vector_stores
from kb.models import Chunk, KnowledgeBase, StoreRemoval, StoreUse
from kb.stores.base import Place, StoreUnavailable

log = logging.getLogger(__name__)

AT_ONCE = 100
LEASE = timedelta(minutes=10)
# A publication that takes longer than this has lost its points, and is done again.
STAGED_FOR = timedelta(hours=1)
FIRST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(hours=1)
# With an organization its secrets go: its removals may hold it up for this long.
PATIENCE = timedelta(days=1)


def draw_chunk_ids(count: int) -> list[int]:
    """Numbers that no chunk has had or will get otherwise."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('kb_chunk', 'id')) FROM generate_series(1, %s)", [count])
        return [row[0] for row in cursor.fetchall()]


def stage(place: Place, store: Mapping[str, Any], chunks: Sequence[int]) -> int:
    """Note points that are about to be written for chunks that do not stand yet; the number to `settle` with."""
    where = {"organization_id": place.organization, "kb": place.knowledge_base, "space": place.space.pk}
    row = StoreRemoval.objects.create(**where, store=dict(store), chunks=list(chunks), due_at=timezone.now() + STAGED_FOR)
    return row.pk


def settle(staged: int, place: Place, store: Mapping[str, Any], *, unused: Collection[int]) -> None:
    """In the transaction that writes the chunks: their points stay, `unused` ones are to go. StoreUnavailable if the removal began."""
    mine = StoreRemoval.objects.filter(id=staged, lease_until=None)
    kept = mine.update(chunks=list(unused), due_at=timezone.now()) if unused else mine.delete()[0]
    if not kept:
        raise StoreUnavailable(f"Points that were written to the store {store['type']} were taken back meanwhile. They are written anew.")
    if not StoreUse.objects.filter(kb=place.knowledge_base, space=place.space.pk, store=dict(store)).exists():
        StoreUse.objects.bulk_create(
            [StoreUse(organization_id=place.organization, kb=place.knowledge_base, space=place.space.pk, store=dict(store))],
            update_conflicts=True,
            unique_fields=["kb", "space"],
            update_fields=["store"],
        )


def drain(knowledge_base_id: UUID | None = None) -> int:
    """Remove what is due, of all or of one knowledge base; how many rows were done. A store that fails is asked again later, with its
    other rows."""
    failed: list[dict[str, Any]] = []
    done = 0
    while row := _take(knowledge_base_id):
        if row.store in failed:
            _postpone(row, "Waits for another removal from this store.")
            continue
        try:
            _remove(row)
        except LecternError as error:
            log.warning("Points of knowledge base %s could not be removed: %s", row.kb, error.message)
            failed.append(row.store)
            _postpone(row, error.message)
            continue
        done += StoreRemoval.objects.filter(id=row.pk).delete()[0]
    return done


def drain_all() -> None:
    """Every minute, as housekeeping."""
    drain()


def hold_up(organization_id: UUID) -> bool:
    """Whether an organization that is being deleted has to wait for its removals: without its secrets no store would let us in."""
    rows = StoreRemoval.objects.filter(organization=organization_id)
    if rows.filter(created_at__gt=timezone.now() - PATIENCE).exists():
        return True
    for row in rows:
        log.error("Points of the deleted knowledge base %s stay in the store %s: %s", row.kb, row.store["type"], row.error)
    rows.delete()
    return False


def pending_chunks(knowledge_base: KnowledgeBase) -> set[int]:
    """Chunks whose points are about to go, or to come to be."""
    rows = StoreRemoval.objects.filter(organization=knowledge_base.organization_id, kb=knowledge_base.pk, chunks__isnull=False)
    return {chunk for chunks in rows.values_list("chunks", flat=True) for chunk in chunks}


def _take(knowledge_base_id: UUID | None) -> StoreRemoval | None:
    now = timezone.now()
    rows = StoreRemoval.objects.filter(Q(lease_until=None) | Q(lease_until__lt=now), due_at__lte=now)
    if knowledge_base_id is not None:
        rows = rows.filter(kb=knowledge_base_id)
    for row in rows.order_by("due_at")[:AT_ONCE]:
        mine = StoreRemoval.objects.filter(id=row.pk, lease_until=row.lease_until, due_at=row.due_at)
        if mine.update(lease_until=now + LEASE):
            return row
    return None


def _remove(row: StoreRemoval) -> None:
    chunks = row.chunks
    if chunks is not None:
        # Of a publication that was cut off after its commit was sent: what stands stays.
        standing = set(Chunk.objects.filter(organization=row.organization_id, id__in=chunks).values_list("id", flat=True))
        chunks = [chunk for chunk in chunks if chunk not in standing]
        if not chunks:
            return
    elif KnowledgeBase.objects.filter(id=row.kb).exists():
        return
    place = vector_stores.place_of(row.organization_id, row.kb, row.space)
    vector_stores.open_for(row.organization_id, row.store).remove(place, chunks)


def _postpone(row: StoreRemoval, error: str) -> None:
    wait = min(FIRST_WAIT * 2 ** min(row.attempts, 20), LONGEST_WAIT)
    StoreRemoval.objects.filter(id=row.pk).update(
        lease_until=None, due_at=timezone.now() + wait, attempts=F("attempts") + 1, error=error[:2000]
    )
