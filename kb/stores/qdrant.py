"""Qdrant by its REST interface: one collection for each space, points numbered by chunk, the tenant and the document as indexed payload."""

from collections.abc import Collection, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

import numpy as np

from kb.models.spaces import EmbeddingSpace
from kb.stores.base import Place, Point, StoreKind, StoreSpec, VectorMatches, VectorQuery, collection_name, directed
from kb.stores.rest import RestStore, batches, matches_of, server_url

PORT = 6333
_BATCH = 256
# `is_tenant`: points of a knowledge base are kept together, so that its share of a big collection is searched and not all of it.
_INDEXES = {
    "knowledge_base": {"type": "keyword", "is_tenant": True},
    "organization": {"type": "keyword"},
    "document": {"type": "keyword"},
}


class QdrantStore:
    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec
        key = spec.text("api_key")
        self._server = RestStore("The store qdrant", server_url(spec, default_port=PORT), {"api-key": key} if key else {})

    def add(self, place: Place, points: Sequence[Point]) -> None:
        rows = directed(points, place.space.dimension)
        path = self._path(place.space)
        for batch in batches(rows, _BATCH):
            body = {"points": [_point(place, point, vector) for point, vector in batch]}
            answer = self._server.call("PUT", f"{path}/points?wait=true", body, writes=True, expected=[HTTPStatus.NOT_FOUND])
            if answer.status == HTTPStatus.NOT_FOUND:
                self._create(place.space)
                answer = self._server.call("PUT", f"{path}/points?wait=true", body, writes=True)
            self._result(answer.body, dict)

    def remove(self, place: Place, chunks: Collection[int] | None) -> None:
        for batch in [None] if chunks is None else batches(chunks, 10 * _BATCH):
            body = {"filter": _conditions(place.organization, [place.knowledge_base], chunks=batch)}
            path = f"{self._path(place.space)}/points/delete?wait=true"
            self._server.call("POST", path, body, writes=True, expected=[HTTPStatus.NOT_FOUND])

    def search(self, query: VectorQuery) -> VectorMatches:
        if query.asks_nothing:
            return VectorMatches([], True, "qdrant")
        body: dict[str, Any] = {
            "query": np.asarray(query.vector, dtype=np.float32).tolist(),
            "filter": _conditions(query.organization, query.knowledge_bases, query.documents, query.chunks),
            "limit": query.limit,
            "with_payload": False,
        }
        rows = self._query(query.space, body)
        if len(rows) < query.limit:
            # All there is, or a graph that ended too early: few rows are scanned as quickly as they are counted.
            return VectorMatches(self._query(query.space, body | {"params": {"exact": True}}), True, "qdrant, exact")
        return VectorMatches(rows, False, "qdrant")

    def chunks_after(self, place: Place, after: int, limit: int) -> list[int]:
        body = {
            "filter": _conditions(place.organization, [place.knowledge_base]),
            "offset": after + 1,
            "limit": limit,
            "with_payload": False,
            "with_vector": False,
        }
        answer = self._server.call("POST", f"{self._path(place.space)}/points/scroll", body, expected=[HTTPStatus.NOT_FOUND])
        if answer.status == HTTPStatus.NOT_FOUND:
            return []
        points = self._result(answer.body, dict).get("points")
        with self._server.reading():
            return [int(point["id"]) for point in points]

    def _query(self, space: EmbeddingSpace, body: dict[str, Any]) -> list[tuple[int, float]]:
        answer = self._server.call("POST", f"{self._path(space)}/points/query", body, expected=[HTTPStatus.NOT_FOUND])
        if answer.status == HTTPStatus.NOT_FOUND:
            raise self._server.absent(collection_name(self.spec, space))
        points = self._result(answer.body, dict).get("points")
        with self._server.reading():
            return matches_of((point["id"], point["score"]) for point in points)

    def _create(self, space: EmbeddingSpace) -> None:
        """May be raced: whoever comes second finds it there."""
        path = self._path(space)
        body = {"vectors": {"size": space.dimension, "distance": "Cosine"}}
        self._server.call("PUT", path, body, writes=True, expected=[HTTPStatus.CONFLICT])
        for field, schema in _INDEXES.items():
            self._server.call("PUT", f"{path}/index?wait=true", {"field_name": field, "field_schema": schema}, writes=True)

    def _path(self, space: EmbeddingSpace) -> str:
        return f"/collections/{quote(collection_name(self.spec, space), safe='')}"

    def _result(self, body: Any, kind: type) -> Any:
        result = body.get("result") if isinstance(body, dict) else None
        if not isinstance(result, kind):
            raise self._server.unreadable("it has no result")
        return result


def _point(place: Place, point: Point, vector: list[float]) -> dict[str, Any]:
    payload = {
        "organization": str(place.organization),
        "knowledge_base": str(place.knowledge_base),
        "document": str(point.document),
        "generation": point.generation,
    }
    return {"id": point.chunk, "vector": vector, "payload": payload}


def _conditions(
    organization: UUID,
    knowledge_bases: Sequence[UUID],
    documents: Collection[UUID] | None = None,
    chunks: Collection[int] | None = None,
) -> dict[str, Any]:
    must: list[dict[str, Any]] = [
        {"key": "organization", "match": {"value": str(organization)}},
        {"key": "knowledge_base", "match": {"any": [str(one) for one in knowledge_bases]}},
    ]
    if documents is not None:
        must.append({"key": "document", "match": {"any": [str(one) for one in documents]}})
    if chunks is not None:
        must.append({"has_id": list(chunks)})
    return {"must": must}


KIND = StoreKind(QdrantStore)
