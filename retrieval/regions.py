"""Where the vectors of a search lie: in this database, or in stores over a network, which are asked outside of transactions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import QuerySet

from kb import vector_stores
from kb.models import Document, EmbeddingSpace
from kb.stores.base import MOST_DOCUMENTS, VectorMatches, VectorQuery
from kb.stores.cosines import read_cosines
from kb.stores.vectors import search_vectors


@dataclass(frozen=True, slots=True)
class Region:
    """Knowledge bases whose vectors of one space lie together; `store` is the external one, None for this database."""

    organization: UUID
    space: EmbeddingSpace
    knowledge_bases: Sequence[UUID]
    store: Mapping[str, Any] | None = None

    def search(
        self,
        vector: np.ndarray,
        *,
        limit: int,
        documents: QuerySet[Document] | None,
        ef_search: int | None = None,
        size: int | None = None,
    ) -> tuple[VectorMatches, bool]:
        """The nearest, and whether only what `documents` names is among them: an external store is told ids, and not too many. `ef_search`
        is how hard an index looks, `size` how many chunks the knowledge bases hold."""
        if self.store is None:
            return search_vectors(**self._scope(), query=vector, limit=limit, documents=documents, ef_search=ef_search, size=size), True
        named = None if documents is None else self._name(documents)
        narrowed = documents is None or named is not None
        return self._ask(vector, limit=limit, documents=named, ef_search=ef_search, size=size), narrowed

    def cosines(self, vector: np.ndarray, chunks: Sequence[int]) -> dict[int, float]:
        """Of those chunks that lie here."""
        if self.store is None or not chunks:
            return read_cosines(**self._scope(), query=vector, chunks=chunks)
        return dict(self._ask(vector, limit=len(chunks), chunks=chunks).rows)

    def _ask(self, vector: np.ndarray, **narrowing: Any) -> VectorMatches:
        store = vector_stores.open_for(self.organization, self.store)
        return store.search(VectorQuery(**self._scope(), vector=vector, **narrowing))

    def _name(self, documents: QuerySet[Document]) -> list[UUID] | None:
        """Their ids; None for too many to send."""
        rows = documents.filter(organization=self.organization, knowledge_base__in=self.knowledge_bases, chunk_count__gt=0)
        ids = list(rows.order_by().values_list("id", flat=True)[: MOST_DOCUMENTS + 1])
        return ids if len(ids) <= MOST_DOCUMENTS else None

    def _scope(self) -> dict[str, Any]:
        return {"organization": self.organization, "space": self.space, "knowledge_bases": self.knowledge_bases}
