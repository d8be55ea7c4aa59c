"""A change of model without downtime: which spaces of a knowledge base live, and the one transaction that lets another one answer.

A knowledge base answers from exactly one space, `space`. Where a version names another model, `named_space` says so, and an open
`SpaceChange` fills that space while the old one answers. `ingestion.refilling` does the work; everything that decides is here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from config.errors import Conflict
from kb.answering import wait_for_publications
from kb.models import Chunk, Document, EmbeddingSpace, KnowledgeBase, KnowledgeBaseVersion, SpaceChange
from kb.stores.contents import NOTHING, read_contents
from kb.stores.coverage import Holding

State = SpaceChange.State


def holding(knowledge_base: KnowledgeBase, space: EmbeddingSpace) -> Holding:
    return Holding(knowledge_base.organization_id, knowledge_base.pk, space)


def open_changes() -> QuerySet[SpaceChange]:
    """Of knowledge bases that are there."""
    return SpaceChange.objects.filter(state__in=SpaceChange.OPEN, knowledge_base__state=KnowledgeBase.State.ACTIVE)


def open_change(knowledge_base: KnowledgeBase) -> SpaceChange | None:
    return SpaceChange.objects.filter(knowledge_base=knowledge_base, state__in=SpaceChange.OPEN).first()


def last_change(knowledge_base: KnowledgeBase) -> SpaceChange | None:
    related = ("from_space__embedding_model", "to_space__embedding_model")
    return SpaceChange.objects.filter(knowledge_base=knowledge_base).select_related(*related).order_by("-created_at").first()


def change_to_undo(knowledge_base: KnowledgeBase) -> SpaceChange | None:
    """What a rollback would undo: the newest change, while it is under way, failed, cancelled or in its grace period."""
    found = last_change(knowledge_base)
    undoable = (*SpaceChange.OPEN, State.GRACE, State.FAILED, State.CANCELLED)
    if found is None or found.is_in_place or found.state not in undoable or found.from_space_id is None:
        return None
    return found


def named_alive(space: EmbeddingSpace) -> bool:
    """Whether a knowledge base answers from the space, is on its way into it, or may still go back to it."""
    if KnowledgeBase.objects.filter(Q(space=space) | Q(named_space=space)).exists():
        return True
    return SpaceChange.objects.filter(_keeps(), Q(to_space=space) | Q(from_space=space)).exists()


def live_spaces(knowledge_base: KnowledgeBase) -> set[int]:
    """Spaces whose vectors of this knowledge base must stay: what answers, what is being filled, and what a rollback needs."""
    live = {knowledge_base.space_id}
    for change in SpaceChange.objects.filter(_keeps(), knowledge_base=knowledge_base):
        live |= {change.from_space_id, change.to_space_id}
    return {space for space in live if space is not None}


def _keeps() -> Q:
    return Q(state__in=SpaceChange.OPEN) | Q(state=State.GRACE, grace_until__gt=timezone.now())


def follow_model(knowledge_base: KnowledgeBase, *, version: KnowledgeBaseVersion, space: EmbeddingSpace) -> None:
    """Let the locked knowledge base follow the model that `version` names; whoever publishes saves its row.

    A knowledge base without chunks answers from the new space at once, and so does one whose chunks all have vectors there: the way
    back within the grace period. Otherwise a change begins, and one that was under way is superseded.
    """
    named_before = knowledge_base.named_space_id or knowledge_base.space_id
    knowledge_base.named_space = space
    if named_before == space.pk:
        return  # of a change that was cancelled or failed, too: an edit of something else does not begin it again
    _end_open(knowledge_base, State.ROLLED_BACK if knowledge_base.space_id == space.pk else State.SUPERSEDED)
    if knowledge_base.space_id == space.pk:
        return
    if knowledge_base.space_id is not None:
        wait_for_publications(knowledge_base.pk)
        if Chunk.objects.filter(organization=knowledge_base.organization_id, knowledge_base=knowledge_base).exists():
            begin(knowledge_base, version=version, space=space, by=version.author_name)
            return
    knowledge_base.space = space


def begin(knowledge_base: KnowledgeBase, *, version: KnowledgeBaseVersion, space: EmbeddingSpace, by: str, **values: int) -> SpaceChange:
    """Open a change of the locked knowledge base, which has no open one. Where nothing is missing it is switched at once."""
    undone = SpaceChange.objects.filter(knowledge_base=knowledge_base, state=State.GRACE, from_space=space, to_space=knowledge_base.space)
    undone.update(state=State.ROLLED_BACK, finished_at=timezone.now())
    contents = read_contents(organization=knowledge_base.organization_id, knowledge_bases=[knowledge_base.pk])
    change = SpaceChange.objects.create(
        organization_id=knowledge_base.organization_id,
        knowledge_base=knowledge_base,
        version=version,
        from_space=knowledge_base.space,
        to_space=space,
        from_model=knowledge_base.space.embedding_model.name,
        to_model=space.embedding_model.name,
        requested_name=by[:300],
        total=contents.get(knowledge_base.pk, NOTHING).chunks,
        **values,
    )
    if not change.is_in_place and holding(knowledge_base, space).is_used():
        switch(knowledge_base, change)
    return change


@contextmanager
def locked(change_id: UUID, *, lease: UUID) -> Iterator[tuple[KnowledgeBase, SpaceChange] | None]:
    """A transaction that holds an open change with its knowledge base, in that order of locks; None if it is not ours any more."""
    with transaction.atomic():
        found = open_changes().filter(id=change_id, lease_token=lease)
        owner = found.values_list("knowledge_base_id", flat=True).first()
        knowledge_base = KnowledgeBase.objects.select_for_update(no_key=True).filter(id=owner).first() if owner else None
        change = found.select_for_update(no_key=True, of=("self",)).first() if knowledge_base else None
        yield (knowledge_base, change) if knowledge_base and change else None


def switch(knowledge_base: KnowledgeBase, change: SpaceChange) -> bool:
    """Let everything be answered from the new space, if every chunk has a vector there; both rows are locked and get saved.

    Searches read the space once and see the old one entirely or the new one entirely. Runs that are under way follow with their next slice.
    """
    wait_for_publications(knowledge_base.pk)
    there = holding(knowledge_base, change.to_space)
    if not there.is_complete():
        return False
    now = timezone.now()
    change.filled_at = change.filled_at or now
    change.error, change.lease_token, change.lease_until = "", None, None
    if change.is_in_place:
        change.state, change.finished_at = State.DONE, now
    else:
        knowledge_base.space = change.to_space
        knowledge_base.save(update_fields=["space"])
        # Those that a purge freed of their space stay so: their vectors are to be written anew.
        Document.objects.filter(knowledge_base=knowledge_base, space__isnull=False).update(space=change.to_space)
        _rehash(knowledge_base, change)
        change.state, change.switched_at = State.GRACE, now
        change.grace_until = now + timedelta(days=settings.ENV.model_grace_days)
    change.save()
    return True


def _rehash(knowledge_base: KnowledgeBase, change: SpaceChange) -> None:
    """Chunks are known by the text that the new model was sent, where it has another prefix: so the next run finds them unchanged."""
    prefix = change.to_space.embedding_model.document_prefix
    if change.from_space is not None and change.from_space.embedding_model.document_prefix == prefix:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE kb_chunk SET text_hash = sha256(convert_to(%s || CASE WHEN context = '' THEN '' ELSE context || E'\n\n' END || text,"
            " 'UTF8')) WHERE organization_id = %s AND knowledge_base_id = %s AND context IS NOT NULL",
            [prefix, knowledge_base.organization_id, knowledge_base.pk],
        )


def cancel(knowledge_base: KnowledgeBase, *, by: str) -> SpaceChange:
    """Stop a change; the old space goes on answering. `Conflict` if none is under way."""
    with transaction.atomic():
        KnowledgeBase.objects.select_for_update(no_key=True).get(id=knowledge_base.id)
        change = _end_open(knowledge_base, State.CANCELLED, error=f"Cancelled by {by}.")
    if change is None:
        raise Conflict("No change of the embedding model is under way; there is nothing to cancel.")
    return change


def fail(change: SpaceChange, *, lease: UUID, error: str, reason: str = "embedding_failed") -> bool:
    """End an open change that cannot go on, as its worker; the old space goes on answering. What was paid stays paid."""
    mine = SpaceChange.objects.filter(id=change.id, lease_token=lease)
    return bool(_ending(mine, State.FAILED, error=error[:2000], reason=reason))


def _end_open(knowledge_base: KnowledgeBase, state: str, *, error: str = "") -> SpaceChange | None:
    change = SpaceChange.objects.filter(knowledge_base=knowledge_base, state__in=SpaceChange.OPEN).first()
    if change is None or not _ending(SpaceChange.objects.filter(id=change.id), state, error=error or change.error):
        return None
    change.refresh_from_db()
    return change


def _ending(rows: QuerySet[SpaceChange], state: str, **values: str) -> int:
    now = timezone.now()
    return rows.filter(state__in=SpaceChange.OPEN).update(state=state, finished_at=now, lease_token=None, lease_until=None, **values)
