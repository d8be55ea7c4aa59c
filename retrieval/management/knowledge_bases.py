"""A knowledge base as a command names it."""

from uuid import UUID

from config.errors import InvalidInput
from kb.models import KnowledgeBase


def named_knowledge_base(name: str) -> KnowledgeBase:
    """By id, or by a name that only one of the installation has. `InvalidInput` otherwise."""
    rows = KnowledgeBase.objects.select_related("organization", "current", "space__embedding_model")
    rows = rows.filter(state=KnowledgeBase.State.ACTIVE, current__isnull=False)
    try:
        found = list(rows.filter(id=UUID(name)))
    except ValueError:
        found = list(rows.filter(name__iexact=name)[:2])
    if not found:
        raise InvalidInput(f"There is no knowledge base {name!r}. Name its id; the admin and the API show it.")
    if len(found) > 1:
        raise InvalidInput(f"Several organizations have a knowledge base {name!r}. Name its id.")
    return found[0]
