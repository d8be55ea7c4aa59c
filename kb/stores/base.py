"""What a vector store must do, and what it is told and answers.

Chunk rows, words and permissions stay in Postgres; a store holds points: a chunk's id and vector, and whose it is. Whatever it names is
joined to the chunks that answer, so a point without a row is invisible and a store may lag behind, but never ahead.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import numpy as np
from django.db.models import QuerySet
from numpy.typing import ArrayLike

from config.errors import InvalidInput, Unavailable
from kb.models.documents import Document
from kb.models.spaces import EmbeddingSpace

# Ids of documents that a query may name; with more, whoever asks looks deeper and drops the others.
MOST_DOCUMENTS = 1_000
# Seconds, from the first byte sent to the last one read. A question is waited for by a person, a batch of points by a worker.
SEARCH_DEADLINE = 10.0
WRITE_DEADLINE = 60.0


class StoreError(Unavailable):
    """A store did not do what it was asked. Never "nothing found". The message names the store and what to do, never a secret."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """Not reached, late, overloaded or failing: the same call may succeed later."""


class StoreRefused(StoreError):
    """It answered that this will never do: a wrong key, a collection of other vectors, a request that it does not understand."""

    transient = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where vectors of one knowledge base lie. Those of one space have one length and may be compared; a store keeps spaces apart."""

    organization: UUID
    knowledge_base: UUID
    space: EmbeddingSpace


@dataclass(frozen=True, slots=True)
class Point:
    """`chunk` is its id in Postgres, unique in the installation. `generation` is the document's when the chunk was written."""

    chunk: int
    document: UUID
    vector: ArrayLike
    generation: int = 0


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """The nearest of some knowledge bases that share a space (not empty). `documents` narrows: ids (at most MOST_DOCUMENTS for a store
    over a network), for pgvector also a query of them. `chunks` narrows to some chunks: their cosines are wanted. `ef_search` is how many
    candidates an HNSW index keeps while it looks, where the store has a say in that; `size` how many chunks the knowledge
    bases hold, where that is known."""

    organization: UUID
    knowledge_bases: Sequence[UUID]
    space: EmbeddingSpace
    vector: np.ndarray
    limit: int
    documents: Collection[UUID] | QuerySet[Document] | None = None
    chunks: Collection[int] | None = None
    ef_search: int | None = None
    size: int | None = None

    @property
    def asks_nothing(self) -> bool:
        """Of a store over a network: what an empty list narrows to needs no request, and some refuse it."""
        return self.limit < 1 or any(given is not None and not len(given) for given in (self.documents, self.chunks))


@dataclass(frozen=True, slots=True)
class VectorMatches:
    """(chunk id, cosine similarity from -1 to 1), best first. `exact` is false when an approximate index answered; `plan` says how."""

    rows: list[tuple[int, float]]
    exact: bool
    plan: str


class VectorStore(Protocol):
    """All methods are thread-safe, end within their deadline, and raise StoreUnavailable or StoreRefused. Vectors were checked: finite, of
    the space's dimension; one of zeros has no direction and is never found."""

    def add(self, place: Place, points: Sequence[Point]) -> None:
        """Write points, also where some of them stand already (then anew). Makes what the space needs. Visible to a search afterwards."""

    def remove(self, place: Place, chunks: Collection[int] | None) -> None:
        """Take these points of the knowledge base out, or all of it (None). Absent ones, or an absent collection, are no error."""

    def search(self, query: VectorQuery) -> VectorMatches:
        """The nearest, of this organization and these knowledge bases alone, by the store's own condition. Fewer than `limit` only when no
        more exist. A space that nothing was ever added to is empty for pgvector and StoreRefused for others, which are asked only for
        what has chunks: their collection was lost."""


class ListingStore(Protocol):
    """A store whose contents can be compared with the chunks."""

    def chunks_after(self, place: Place, after: int, limit: int) -> list[int]:
        """Ids of the knowledge base's points above `after`, ascending, at most `limit`."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """A store as it can be opened: parameters with their secrets in place, so they are in no representation."""

    type: str
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def text(self, name: str, default: str = "") -> str:
        value = self.parameters.get(name)
        return default if value is None or value == "" else str(value)


@dataclass(frozen=True, slots=True)
class StoreKind:
    """What a name in settings.VECTOR_STORES leads to. `open` is called once per process and spec and makes no request.

    `in_transaction`: its points are rows of our own database and are written with the chunks. `missing` answers why this installation
    cannot use it ("" if it can): a client that is not installed, with the lock that brings it.
    """

    open: Callable[[StoreSpec], VectorStore]
    in_transaction: bool = False
    missing: Callable[[], str] = lambda: ""


def collection_name(spec: StoreSpec, space: EmbeddingSpace, *, parameter: str = "collection_name") -> str:
    """The collection of a space: the name that was configured, and the number of the space, because a change of model has two at once."""
    return f"{spec.text(parameter, 'lectern')}_s{space.pk}"


def stack(points: Sequence[Point], dimension: int) -> np.ndarray:
    """Their vectors as one float32 array. InvalidInput for another dimension, or a number that is not finite."""
    try:
        values = np.array([np.asarray(point.vector, dtype=np.float32) for point in points], dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"Vectors must be {dimension} numbers each: {error}.") from error
    if values.ndim != 2 or values.shape[1] != dimension:
        found = values.shape[1] if values.ndim == 2 else "something else"
        raise InvalidInput(
            f"The space holds vectors of {dimension} dimensions, these have {found}. Check the model's registered dimension."
        )
    if not np.isfinite(values).all():
        raise InvalidInput("A vector holds a number that is not finite. Check the embedding model.")
    return values


def directed(points: Sequence[Point], dimension: int) -> list[tuple[Point, list[float]]]:
    """The points that can be found, each with its vector as a unit vector: some stores refuse a vector of zeros, and some do not divide."""
    values = stack(points, dimension)
    lengths = np.linalg.norm(values, axis=1)
    found = [index for index, length in enumerate(lengths) if length > 0]
    return [(points[index], (values[index] / lengths[index]).tolist()) for index in found]
