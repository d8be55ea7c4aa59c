"""From a ranked list of passages to the hits of an answer: most per knowledge base and document, equal texts as one, and variety."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kb.stores.pairs import read_pairs
from retrieval.candidates import Shelf
from retrieval.hydration import Found
from retrieval.likeness import Wordprint, diversified, nearly_equal, overlap, wordprint
from retrieval.query import Query

# Texts whose lengths differ more are not nearly equal, and need not be taken apart to know.
_LENGTHS = 0.8


@dataclass(slots=True)
class Selection:
    """Hits taken in the order that they are offered. One that says nearly the same as a hit of another document becomes its twin."""

    query: Query
    found: list[Found] = field(default_factory=list)
    _of_base: Counter[UUID] = field(default_factory=Counter)
    _of_document: Counter[UUID] = field(default_factory=Counter)
    _prints: dict[int, Wordprint] = field(default_factory=dict)

    def offer(self, hits: Iterable[Found]) -> None:
        for hit in hits:
            twin = self._twin_of(hit) if hit.target.collapse_duplicates else None
            if twin is not None:
                if hit.row["document_id"] not in [other.row["document_id"] for other in twin.twins]:
                    twin.twins.append(hit)
            elif self._has_room(hit):
                self._of_base[hit.target.id] += 1
                self._of_document[hit.row["document_id"]] += 1
                self.found.append(hit)

    def is_full(self, bases: Iterable[UUID]) -> bool:
        """Whether nothing more fits: the answer is full, or each of these knowledge bases gave all that it may."""
        most = {target.id: target.max_results for target in self.query.targets}
        return len(self.found) >= self.query.limit or all(self._of_base[base] >= most[base] for base in bases)

    def _has_room(self, hit: Found) -> bool:
        target = hit.target
        return (
            len(self.found) < self.query.limit
            and self._of_base[target.id] < target.max_results
            and not (target.max_per_document and self._of_document[hit.row["document_id"]] >= target.max_per_document)
        )

    def _twin_of(self, hit: Found) -> Found | None:
        text, document = hit.row["text"], hit.row["document_id"]
        for other in self.found:
            if other.row["document_id"] == document:
                continue
            theirs = other.row["text"]
            if theirs == text:
                return other
            if min(len(text), len(theirs)) >= _LENGTHS * max(len(text), len(theirs)) and nearly_equal(self._print(hit), self._print(other)):
                return other
        return None

    def _print(self, hit: Found) -> Wordprint:
        chunk = hit.row["id"]
        if chunk not in self._prints:
            self._prints[chunk] = wordprint(hit.row["text"])
        return self._prints[chunk]


def select(query: Query, ranked: Iterable[Found]) -> list[Found]:
    """The hits of the answer, best first."""
    selection = Selection(query)
    for hit in ranked:
        hit.twins.clear()
    selection.offer(ranked)
    return selection.found


def diversify(query: Query, pool: Sequence[Found], shelves: Sequence[Shelf]) -> list[Found]:
    """The pool in an order where hits that repeat others come later, as far as their knowledge bases ask for it."""
    wishes = [hit.target.diversity for hit in pool]
    if not any(wishes):
        return list(pool)
    cosines = _cosines(query, pool, shelves)
    prints: dict[int, Wordprint] = {}

    def alike(one: int, other: int) -> float:
        chunks = pool[one].row["id"], pool[other].row["id"]
        known = cosines.get((min(chunks), max(chunks)))
        if known is not None:
            return max(0.0, known)
        for place in (one, other):
            if place not in prints:
                prints[place] = wordprint(pool[place].row["text"])
        return overlap(prints[one], prints[other])

    scores = [hit.candidate.score for hit in pool]
    return [pool[place] for place in diversified(scores, wishes, alike, wanted=2 * query.limit)]


def _cosines(query: Query, pool: Sequence[Found], shelves: Sequence[Shelf]) -> dict[tuple[int, int], float]:
    chunks = [hit.row["id"] for hit in pool]
    found: dict[tuple[int, int], float] = {}
    for shelf in shelves:
        for space in shelf.spaces:
            found |= read_pairs(organization=query.organization, space=space, knowledge_bases=shelf.ids_in(space), chunks=chunks)
    return found
