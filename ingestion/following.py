"""A run follows its knowledge base into another embedding space: what it publishes belongs where searches look."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from config.errors import Conflict
from ingestion import claims
from ingestion.models import IngestionRun
from kb.answering import hold_space
from kb.models import EmbeddingSpace


class SpaceLeft(Conflict):
    """The knowledge base answers from another space than the run was working for."""

    transient = True


@contextmanager
def publishing(run: IngestionRun) -> Iterator[None]:
    """`claims.writing`, while the knowledge base goes on answering from the run's space. Raises `SpaceLeft`, and `ClaimLost`."""
    with transaction.atomic():
        if hold_space(run.knowledge_base_id) != run.space_id:
            raise SpaceLeft("The knowledge base answers from another embedding space now; the next slice of the run works for that.")
        with claims.writing(run):
            yield


def follow(run: IngestionRun) -> None:
    """Let an open run work for the space that answers now. Its items that have vectors of the space before are read again, for new ones."""
    space_id = run.knowledge_base.space_id
    if run.space_id is None or space_id is None or run.space_id == space_id:
        return
    with claims.updating(run) as row:
        row.space_id = space_id
        row.save(update_fields=["space"])
    run.space = EmbeddingSpace.objects.select_related("embedding_model").get(id=space_id)
