"""Chroma by its REST interface (version 2): one collection for each space, ids are those of chunks, the metadata say whose they are."""

from collections.abc import Collection, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

import numpy as np

from kb.models.spaces import EmbeddingSpace
from kb.stores.base import Place, Point, StoreKind, StoreSpec, VectorMatches, VectorQuery, collection_name, directed
from kb.stores.rest import Answer, RestStore, batches, matches_of

_BATCH = 256


class ChromaStore:
    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec
        key = spec.text("api_key")
        self._server = RestStore("The store chroma", spec.text("base_url").rstrip("/"), {"x-chroma-token": key} if key else {})
        tenant, database = spec.text("tenant_name", "default_tenant"), spec.text("database_name", "default_database")
        self._root = f"/api/v2/tenants/{quote(tenant, safe='')}/databases/{quote(database, safe='')}/collections"
        # Requests name a collection by an id of the server's, which another one gets when it is made anew.
        self._ids: dict[int, str] = {}

    def add(self, place: Place, points: Sequence[Point]) -> None:
        for batch in batches(directed(points, place.space.dimension), _BATCH):
            body = {
                "ids": [str(point.chunk) for point, _ in batch],
                "embeddings": [vector for _, vector in batch],
                "metadatas": [_metadata(place, point) for point, _ in batch],
            }
            if self._ask(place.space, "upsert", body, writes=True) is None:
                self._create(place.space)
                if self._ask(place.space, "upsert", body, writes=True) is None:
                    raise self._server.absent(collection_name(self.spec, place.space))

    def remove(self, place: Place, chunks: Collection[int] | None) -> None:
        where = _conditions(place.organization, [place.knowledge_base])
        for batch in [None] if chunks is None else batches(chunks, _BATCH):
            ids = {} if batch is None else {"ids": [str(chunk) for chunk in batch]}
            self._ask(place.space, "delete", {"where": where, **ids}, writes=True)

    def search(self, query: VectorQuery) -> VectorMatches:
        if query.asks_nothing:
            return VectorMatches([], True, "chroma")
        body: dict[str, Any] = {
            "query_embeddings": [np.asarray(query.vector, dtype=np.float32).tolist()],
            "n_results": query.limit,
            "where": _conditions(query.organization, query.knowledge_bases, query.documents),
            "include": ["distances"],
        }
        if query.chunks is not None:
            body["ids"] = [str(chunk) for chunk in query.chunks]
        answer = self._ask(query.space, "query", body)
        if answer is None:
            raise self._server.absent(collection_name(self.spec, query.space))
        with self._server.reading():
            ids, distances = answer.body["ids"][0], answer.body["distances"][0]
            return VectorMatches(matches_of((id, 1 - distance) for id, distance in zip(ids, distances, strict=True)), False, "chroma")

    def chunks_after(self, place: Place, after: int, limit: int) -> list[int]:
        """Its own pages have no order of ids, so all of them come and the first ones are kept."""
        where = {"$and": [*_conditions(place.organization, [place.knowledge_base])["$and"], {"chunk": {"$gt": after}}]}
        answer = self._ask(place.space, "get", {"where": where, "include": []})
        if answer is None:
            return []
        with self._server.reading():
            return sorted(int(one) for one in answer.body["ids"])[:limit]

    def _ask(self, space: EmbeddingSpace, verb: str, body: dict[str, Any], *, writes: bool = False) -> Answer | None:
        """What the collection answers; None if there is none. One that was made anew since is found again."""
        known = self._ids.get(space.pk)
        for identifier in [known, None] if known else [None]:
            found = identifier or self._find(space)
            if found is None:
                return None
            answer = self._server.call("POST", f"{self._root}/{found}/{verb}", body, writes=writes, expected=[HTTPStatus.NOT_FOUND])
            if answer.status != HTTPStatus.NOT_FOUND:
                if not isinstance(answer.body, dict):
                    raise self._server.unreadable("it is no object")
                return answer
            self._ids.pop(space.pk, None)
        return None

    def _find(self, space: EmbeddingSpace) -> str | None:
        name = quote(collection_name(self.spec, space), safe="")
        answer = self._server.call("GET", f"{self._root}/{name}", expected=[HTTPStatus.NOT_FOUND])
        return None if answer.status == HTTPStatus.NOT_FOUND else self._keep(space, answer)

    def _create(self, space: EmbeddingSpace) -> None:
        body = {
            "name": collection_name(self.spec, space),
            "get_or_create": True,
            "configuration": {"hnsw": {"space": "cosine"}},
            "metadata": {"dimension": space.dimension},
        }
        self._keep(space, self._server.call("POST", self._root, body, writes=True))

    def _keep(self, space: EmbeddingSpace, answer: Answer) -> str:
        with self._server.reading():
            found = str(UUID(answer.body["id"]))
            metric = answer.body["configuration_json"]["hnsw"]["space"]
        if metric != "cosine":
            raise self._server.unreadable(f"the collection '{collection_name(self.spec, space)}' measures by {metric}, not by cosine")
        self._ids[space.pk] = found
        return found


def _metadata(place: Place, point: Point) -> dict[str, Any]:
    return {
        "organization": str(place.organization),
        "knowledge_base": str(place.knowledge_base),
        "document": str(point.document),
        "generation": point.generation,
        "chunk": point.chunk,
    }


def _conditions(organization: UUID, knowledge_bases: Sequence[UUID], documents: Collection[UUID] | None = None) -> dict[str, Any]:
    must: list[dict[str, Any]] = [
        {"organization": str(organization)},
        {"knowledge_base": {"$in": [str(one) for one in knowledge_bases]}},
    ]
    if documents is not None:
        must.append({"document": {"$in": [str(one) for one in documents]}})
    return {"$and": must}


KIND = StoreKind(ChromaStore)
