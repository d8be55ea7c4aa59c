"""A knowledge base whose rows stand in Postgres and whose points stand in the store under test."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kb.models import Document
from kb.stores.base import Place, Point, VectorQuery, VectorStore

DIMENSION = 256


def unit(*values: float) -> np.ndarray:
    """A direction: the first few coordinates, the rest zero."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[: len(values)] = values
    return vector / np.linalg.norm(vector)


@dataclass
class Filled:
    """A knowledge base with documents whose chunks stand in Postgres, and its points."""

    store: VectorStore
    place: Place
    shelf: Any
    vectors: dict[int, np.ndarray] = field(default_factory=dict)

    def add(self, *vectors: np.ndarray) -> tuple[Document, list[int]]:
        """A document, one chunk for each vector."""
        chunks = self.shelf.add_document(len(vectors))
        document = self.shelf.documents[-1]
        self.put(document, dict(zip(chunks, vectors, strict=True)))
        return document, chunks

    def put(self, document: Document, vectors: dict[int, np.ndarray]) -> None:
        self.vectors |= vectors
        self.store.add(self.place, [Point(chunk, document.pk, vector, generation=1) for chunk, vector in vectors.items()])

    def search(self, vector: np.ndarray, limit: int = 10, **values: Any) -> list[tuple[int, float]]:
        return self.query(vector, limit, **values).rows

    def query(self, vector: np.ndarray, limit: int = 10, **values: Any):
        scope = {"organization": self.place.organization, "knowledge_bases": [self.place.knowledge_base], "space": self.place.space}
        return self.store.search(VectorQuery(**(scope | values), vector=vector, limit=limit))

    def found(self, vector: np.ndarray, limit: int = 10, **values: Any) -> list[int]:
        return [chunk for chunk, _ in self.search(vector, limit, **values)]

    def listed(self) -> list[int]:
        return self.store.chunks_after(self.place, 0, 10_000)
