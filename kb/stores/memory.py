"""Points in this process: for tests. Another process does not see them, and they end with it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from threading import Lock
from uuid import UUID

import numpy as np
from django.conf import settings

from kb.stores.base import Place, Point, StoreKind, StoreRefused, StoreSpec, VectorMatches, VectorQuery, directed


@dataclass(frozen=True, slots=True)
class _Held:
    organization: UUID
    knowledge_base: UUID
    document: UUID
    vector: np.ndarray


# One for the process, as a server would be one for the installation.
_spaces: dict[int, dict[int, _Held]] = {}
_lock = Lock()


class MemoryStore:
    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec

    def add(self, place: Place, points: Sequence[Point]) -> None:
        rows = directed(points, place.space.dimension)
        with _lock:
            held = _spaces.setdefault(place.space.pk, {})
            for point, vector in rows:
                held[point.chunk] = _Held(place.organization, place.knowledge_base, point.document, np.array(vector, dtype=np.float32))

    def remove(self, place: Place, chunks: Collection[int] | None) -> None:
        with _lock:
            held = _spaces.get(place.space.pk, {})
            for chunk in list(held if chunks is None else chunks):
                if chunk in held and _is_of(held[chunk], place):
                    del held[chunk]

    def search(self, query: VectorQuery) -> VectorMatches:
        bases = set(query.knowledge_bases)
        documents = None if query.documents is None else set(query.documents)
        wanted = None if query.chunks is None else set(query.chunks)
        with _lock:
            if query.space.pk not in _spaces:
                raise StoreRefused("The store memory holds nothing in this process: another one ingested it, or this one started again.")
            found = [
                (chunk, one.vector)
                for chunk, one in _spaces.get(query.space.pk, {}).items()
                if one.organization == query.organization
                and one.knowledge_base in bases
                and (documents is None or one.document in documents)
                and (wanted is None or chunk in wanted)
            ]
        asked = np.asarray(query.vector, dtype=np.float32)
        length = float(np.linalg.norm(asked))
        if not found or length == 0:
            return VectorMatches([], True, "memory")
        cosines = np.stack([vector for _, vector in found]) @ (asked / length)
        ranked = sorted(zip((chunk for chunk, _ in found), cosines.tolist(), strict=True), key=lambda row: (-row[1], row[0]))
        return VectorMatches(ranked[: query.limit], True, "memory")

    def chunks_after(self, place: Place, after: int, limit: int) -> list[int]:
        with _lock:
            held = _spaces.get(place.space.pk, {})
            return sorted(chunk for chunk, one in held.items() if chunk > after and _is_of(one, place))[:limit]


def _is_of(held: _Held, place: Place) -> bool:
    return (held.organization, held.knowledge_base) == (place.organization, place.knowledge_base)


def forget_all() -> None:
    with _lock:
        _spaces.clear()


def _missing() -> str:
    return (
        ""
        if settings.ENV.debug
        else (
            "It is for tests: it forgets everything when a process ends, and workers and web processes do not see each other's. "
            "LECTERN_DEBUG=true allows it."
        )
    )


KIND = StoreKind(MemoryStore, missing=_missing)
