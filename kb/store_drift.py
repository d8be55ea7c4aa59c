"""Whether the points of an external store agree with the chunks: it is read page by page, its points by number alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kb import store_removals, vector_stores
from kb.models import Chunk, KnowledgeBase
from kb.stores.base import Place

PAGE = 10_000


@dataclass(frozen=True, slots=True)
class StoreDrift:
    """Missing: how many chunks have no point. Orphans: points whose chunk is gone and that nothing is about to remove."""

    missing: int
    orphans: tuple[int, ...]


def compare_store(knowledge_base: KnowledgeBase, *, space: int, store: Mapping[str, Any]) -> StoreDrift:
    """Raises StoreUnavailable and StoreRefused. What is published meanwhile may count as missing."""
    pending = store_removals.pending_chunks(knowledge_base)
    chunks = Chunk.objects.filter(organization=knowledge_base.organization_id, knowledge_base=knowledge_base)
    standing = chunks.count()
    opened, place = vector_stores.open_for(knowledge_base.organization_id, store), _place(knowledge_base, space)
    orphans: list[int] = []
    found, after = 0, 0
    while page := opened.chunks_after(place, after, PAGE):
        there = set(chunks.filter(id__in=page).values_list("id", flat=True))
        found += len(there)
        orphans += [chunk for chunk in page if chunk not in there and chunk not in pending]
        after = page[-1]
    return StoreDrift(max(0, standing - found), tuple(orphans))


def remove_points(knowledge_base: KnowledgeBase, *, space: int, store: Mapping[str, Any], chunks: Sequence[int]) -> int:
    vector_stores.open_for(knowledge_base.organization_id, store).remove(_place(knowledge_base, space), chunks)
    return len(chunks)


def _place(knowledge_base: KnowledgeBase, space: int) -> Place:
    return vector_stores.place_of(knowledge_base.organization_id, knowledge_base.pk, space)
