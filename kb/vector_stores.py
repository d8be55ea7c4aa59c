"""Which store holds the vectors of a knowledge base, and the way to it: the one place where a store's secrets are resolved."""

import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from config import secrets
from config.errors import Conflict, InvalidInput
from kb.models import DIMENSIONS, Chunk, Document, EmbeddingSpace, KnowledgeBase, KnowledgeBaseVersion, Secret, StoreUse
from kb.schemas import load_stored
from kb.schemas.store import Store
from kb.stores.base import Place, StoreRefused, StoreSpec, VectorStore
from kb.stores.opening import open_store, store_kinds

log = logging.getLogger(__name__)

# No chunk has this id: who asks for points above it only asks whether the store answers.
_BEYOND = 2**62


def is_external(store: Mapping[str, Any]) -> bool:
    """Whether its points are written and removed by requests, beside the transactions of the database. A type that this installation does
    not know is: it cannot be its own database."""
    kinds = store_kinds()
    return store["type"] not in kinds or not kinds.load(store["type"]).in_transaction


def store_in(version: KnowledgeBaseVersion) -> dict[str, Any]:
    """As a version names it."""
    return load_stored(version.document).store.model_dump(mode="json")


def open_for(organization_id: UUID, store: Mapping[str, Any]) -> VectorStore:
    """A published store, its secrets resolved. StoreRefused if one is missing, or if this installation lacks what the store needs."""
    kinds = store_kinds()
    try:
        if why := kinds.load(store["type"]).missing():
            raise InvalidInput(why)
        parameters = secrets.resolve(dict(store["parameters"]), lambda name: _secret(organization_id, name))
    except InvalidInput as error:
        raise StoreRefused(f"The store {store['type']} cannot be asked: {error.message}") from error
    return open_store(StoreSpec(store["type"], parameters))


def _secret(organization_id: UUID, name: str) -> str | None:
    """The organization's own alone: it chose the server that the value goes to, so the installation's must not go there."""
    row = Secret.objects.filter(organization_id=organization_id, name=name).first()
    return secrets.decrypt(bytes(row.ciphertext)) if row else None


def stores_of(knowledge_base: KnowledgeBase) -> dict[int, dict[str, Any]]:
    """The external stores that hold points of a knowledge base, by space."""
    return dict(StoreUse.objects.filter(kb=knowledge_base.pk).values_list("space", "store"))


def place_of(organization_id: UUID, knowledge_base_id: UUID, space: int) -> Place:
    """Also of a space that is gone meanwhile, as with an organization's own model: its collection goes by its number."""
    found = EmbeddingSpace.objects.filter(id=space).first() or EmbeddingSpace(id=space, dimension=DIMENSIONS[0])
    return Place(organization_id, knowledge_base_id, found)


def require_answer(document_id: UUID | None) -> None:
    """Raise StoreUnavailable or StoreRefused while the external store of a document's knowledge base could not remove its points."""
    for used in StoreUse.objects.filter(kb__in=Document.objects.filter(id=document_id).values("knowledge_base_id")):
        place = place_of(used.organization_id, used.kb, used.space)
        open_for(used.organization_id, used.store).chunks_after(place, _BEYOND, 1)


def follow_store(knowledge_base: KnowledgeBase, *, before: KnowledgeBaseVersion | None, now: Store, model_changes: bool) -> None:
    """Let the locked knowledge base follow the store that its next version names. `Conflict` for another store, or another model in an
    external one, while it holds something: its points would have to be written anew.

    Where only the key or the encryption changes, points stay where they are.
    """
    if now.type == "memory":
        log.warning("Knowledge base %s keeps its vectors in the memory of each process. That is for tests.", knowledge_base.pk)
    if before is None:
        return
    old, new = load_stored(before.document).store, now.model_dump(mode="json")
    moves = old.identity != now.identity
    if (moves or (model_changes and is_external(new))) and _holds_something(knowledge_base):
        what = "another store" if moves else "another embedding model in an external store"
        raise Conflict(
            f"A knowledge base that holds something does not move to {what}. Duplicate it with the other one, and delete this one when the "
            "copy has run; or take its documents out first."
        )
    if moves:
        StoreUse.objects.filter(kb=knowledge_base.pk).delete()
    elif is_external(new):
        StoreUse.objects.filter(kb=knowledge_base.pk).update(store=new)


def _holds_something(knowledge_base: KnowledgeBase) -> bool:
    return Chunk.objects.filter(organization=knowledge_base.organization_id, knowledge_base=knowledge_base).exists()
