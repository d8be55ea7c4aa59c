"""What a change of model leaves behind: vectors of a knowledge base in spaces that it left, and partitions that nobody uses any more."""

import logging
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from kb import space_changes
from kb.answering import hold_space
from kb.models import EmbeddingSpace, KnowledgeBase, SpaceChange
from kb.stores.provision import drop_space, is_filled
from kb.stores.vectors import remove_vectors

log = logging.getLogger(__name__)


def remove_left_vectors() -> None:
    """Grace periods end, and vectors of spaces that were left go batch by batch, each a transaction."""
    now = timezone.now()
    past = SpaceChange.objects.filter(state=SpaceChange.State.GRACE, grace_until__lte=now)
    past.update(state=SpaceChange.State.DONE, finished_at=now)
    for knowledge_base_id, space_id in _used():
        space = EmbeddingSpace.objects.filter(id=space_id).first()
        if space is not None:
            while _remove_batch(knowledge_base_id, space):
                pass


def drop_unused_partitions() -> None:
    """Partitions of spaces that nobody uses or may go back to, where something was once written: their files go with them."""
    for space in EmbeddingSpace.objects.filter(provisioned_at__isnull=False):
        if not space_changes.named_alive(space) and is_filled(space):
            drop_space(space)  # the sweep attaches an empty one, for who names the model next
            log.info("The partition of the space %s went: no knowledge base uses it.", space)


def _used() -> list[tuple[UUID, int]]:
    """Knowledge bases with a space that is not the one that answers; whether it may go is asked under the lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.kb, u.space FROM embedding_use u JOIN kb_knowledgebase k ON k.id = u.kb"
            " WHERE k.state = %s AND u.space IS DISTINCT FROM k.space_id",
            [KnowledgeBase.State.ACTIVE],
        )
        return cursor.fetchall()


def _remove_batch(knowledge_base_id: UUID, space: EmbeddingSpace) -> int:
    """A switch or a publication cannot come in between, so what is wanted again meanwhile stays."""
    with transaction.atomic():
        hold_space(knowledge_base_id)
        knowledge_base = KnowledgeBase.objects.filter(id=knowledge_base_id).first()
        if knowledge_base is None or space.pk in space_changes.live_spaces(knowledge_base):
            return 0
        return remove_vectors(organization=knowledge_base.organization_id, space=space, knowledge_base=knowledge_base.id)
