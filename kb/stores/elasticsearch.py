"""Elasticsearch and OpenSearch by their REST interface: one index for each space, documents numbered by chunk. Which of the two it is,
the server says."""

import base64
import json
import re
from collections.abc import Collection, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import numpy as np

from kb.models.spaces import EmbeddingSpace
from kb.stores.base import (
    Place,
    Point,
    StoreKind,
    StoreRefused,
    StoreSpec,
    StoreUnavailable,
    VectorMatches,
    VectorQuery,
    collection_name,
    directed,
)
from kb.stores.rest import RestStore, batches, matches_of
from kb.stores.search_dialects import MOST, VECTOR, Conditions, Dialect, ElasticsearchDialect, OpenSearchDialect

# A name with a comma or a star would be several indexes.
_INDEX_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,199}")
_BATCH = 256
_DELETED_TOGETHER = 10_000
_PASSING = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY})
_PASSING |= {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT, HTTPStatus.CONFLICT}
_BULK = {"Content-Type": "application/x-ndjson"}


class ElasticsearchStore:
    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec
        if not _INDEX_NAME.fullmatch(collection_name(spec, EmbeddingSpace(pk=0), parameter="index_name")):
            raise StoreRefused("The store elasticsearch: index_name takes small letters, digits, and - _ . after the first.")
        url = urlsplit(spec.text("server_url"))
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query or url.fragment:
            raise StoreRefused(
                "The store elasticsearch: server_url must look like https://host:9200. Who you are goes into api_key or password."
            )
        self._server = RestStore("The store elasticsearch", url.geturl().rstrip("/"), _credentials(spec))
        self._dialect: Dialect | None = None

    def add(self, place: Place, points: Sequence[Point]) -> None:
        rows = directed(points, place.space.dimension)
        if not rows:
            return
        # At each call: a bulk request to an index that was deleted meanwhile would make one that takes vectors for numbers.
        self._provide(place.space)
        for batch in batches(rows, _BATCH):
            lines = [line for point, vector in batch for line in ({"index": {"_id": str(point.chunk)}}, _document(place, point, vector))]
            content = "".join(f"{json.dumps(line, allow_nan=False)}\n" for line in lines).encode()
            path = f"/{self._index(place.space)}/_bulk?refresh=wait_for"
            answer = self._server.call("POST", path, content=content, headers=_BULK, writes=True)
            self._check_items(answer.body, len(batch))

    def remove(self, place: Place, chunks: Collection[int] | None) -> None:
        path = f"/{self._index(place.space)}/_delete_by_query?refresh=true&conflicts=proceed"
        for batch in [None] if chunks is None else batches(chunks, _DELETED_TOGETHER):
            query = {"bool": {"filter": _conditions(place.organization, [place.knowledge_base], chunks=batch)}}
            body = {"query": query, "max_docs": _DELETED_TOGETHER}
            while self._delete(path, body) == _DELETED_TOGETHER:
                pass

    def search(self, query: VectorQuery) -> VectorMatches:
        asked = np.asarray(query.vector, dtype=np.float32)
        length = float(np.linalg.norm(asked))
        if query.asks_nothing or not length:
            return VectorMatches([], True, "elasticsearch")
        vector = (asked / length).tolist()
        conditions = _conditions(query.organization, query.knowledge_bases, query.documents, query.chunks)
        dialect = self._spoken()
        if query.chunks is None and query.limit <= MOST:
            body = dialect.nearest(vector, query.limit, conditions)
            rows = self._rows(query.space, body | {"size": query.limit}, lambda score: 2 * score - 1)
            if len(rows) == query.limit:
                return VectorMatches(rows, False, "elasticsearch")
        # All there is, or a graph that ended too early: few rows are scanned as quickly as they are counted.
        return VectorMatches(self._scan(query, dialect.scan(vector, conditions)), True, "elasticsearch, exact")

    def chunks_after(self, place: Place, after: int, limit: int) -> list[int]:
        self._spoken()
        found: list[int] = []
        while len(found) < limit:
            last = found[-1] if found else after
            conditions = [*_conditions(place.organization, [place.knowledge_base]), {"range": {"chunk": {"gt": last}}}]
            size = min(MOST, limit - len(found))
            body = {"query": {"bool": {"filter": conditions}}, "sort": [{"chunk": "asc"}], "size": size}
            hits = self._hits(place.space, body, absent_is_empty=True)
            with self._server.reading():
                found += [int(hit["_id"]) for hit in hits]
            if len(hits) < size:
                break
        return found

    def _scan(self, query: VectorQuery, body: dict[str, Any]) -> list[tuple[int, float]]:
        body |= {"sort": [{"_score": "desc"}, {"chunk": "asc"}]}
        rows: list[tuple[int, float]] = []
        while len(rows) < query.limit:
            size = min(MOST, query.limit - len(rows))
            hits = self._hits(query.space, body | {"size": size})
            with self._server.reading():
                rows += matches_of((hit["_id"], hit["sort"][0] - 1) for hit in hits)
                if len(hits) < size:
                    break
                body["search_after"] = hits[-1]["sort"]
        return rows

    def _rows(self, space: EmbeddingSpace, body: dict[str, Any], cosine_of: Any) -> list[tuple[int, float]]:
        hits = self._hits(space, body)
        with self._server.reading():
            return matches_of((hit["_id"], cosine_of(hit["_score"])) for hit in hits)

    def _hits(self, space: EmbeddingSpace, body: dict[str, Any], *, absent_is_empty: bool = False) -> list[dict[str, Any]]:
        """Hits of a search that every shard answered: a part of them is not an answer."""
        index = self._index(space)
        path = f"/{index}/_search?allow_partial_search_results=false"
        asked = body | {"_source": False, "track_total_hits": False}
        answer = self._server.call("POST", path, asked, expected=[HTTPStatus.NOT_FOUND])
        if answer.status == HTTPStatus.NOT_FOUND:
            if absent_is_empty:
                return []
            raise self._server.absent(index)
        with self._server.reading():
            if answer.body["timed_out"] or answer.body["_shards"]["failed"]:
                raise StoreUnavailable("The store elasticsearch answered in part only: shards failed or were late. Look at its health.")
            return list(answer.body["hits"]["hits"])

    def _delete(self, path: str, body: dict[str, Any]) -> int:
        answer = self._server.call("POST", path, body, writes=True, expected=[HTTPStatus.NOT_FOUND])
        if answer.status == HTTPStatus.NOT_FOUND:
            return 0
        with self._server.reading():
            if answer.body["timed_out"] or answer.body["failures"] or answer.body["version_conflicts"]:
                raise StoreUnavailable("The store elasticsearch deleted a part only: it was late, or points changed meanwhile. Try again.")
            return int(answer.body["deleted"])

    def _check_items(self, body: Any, number: int) -> None:
        """A bulk request answers 200 whatever became of its lines."""
        with self._server.reading():
            if len(body["items"]) != number:
                raise self._server.unreadable(f"{len(body['items'])} of {number} points were told of")
            failed = [item["index"] for item in body["items"] if item["index"]["status"] >= HTTPStatus.BAD_REQUEST]
            if not failed:
                return
            first = next((item for item in failed if item["status"] not in _PASSING), failed[0])
            why = f"{first['error']['type']}: {first['error']['reason']}"[:300]
            message = f"The store elasticsearch did not write {len(failed)} of {number} points ({first['status']}, {why})."
            passing = first["status"] in _PASSING
        raise (StoreUnavailable if passing else StoreRefused)(message, upstream_status=first["status"])

    def _provide(self, space: EmbeddingSpace) -> None:
        """The index with the right field is there afterwards. May be raced: whoever comes second finds it there."""
        path, dialect = f"/{self._index(space)}", self._spoken()
        found = self._server.call("GET", f"{path}/_mapping", writes=True, expected=[HTTPStatus.NOT_FOUND])
        if found.status == HTTPStatus.NOT_FOUND:
            made = self._server.call("PUT", path, dialect.index(space.dimension), writes=True, expected=[HTTPStatus.BAD_REQUEST])
            if made.status != HTTPStatus.BAD_REQUEST:
                return
            if "resource_already_exists_exception" not in json.dumps(made.body):
                raise StoreRefused(f"The store elasticsearch did not make its index: {json.dumps(made.body)[:300]}")
            found = self._server.call("GET", f"{path}/_mapping", writes=True)
        with self._server.reading():
            (index,) = found.body.values()  # under an alias it has another name
            length = dialect.length_of(index["mappings"].get("properties", {}).get(VECTOR, {}))
        if length != space.dimension:
            held = f"vectors of {length} dimensions" if length else "no vectors"
            raise StoreRefused(
                f"The store elasticsearch: the index {self._index(space)} holds {held}, the space has {space.dimension} dimensions. "
                "Give another index_name."
            )

    def _spoken(self) -> Dialect:
        """By what the server says of itself, once."""
        if self._dialect is None:
            said = self._server.call("GET", "/").body
            with self._server.reading():
                version = said["version"]
                is_opensearch = version.get("distribution") == "opensearch"
                if not is_opensearch and said.get("tagline") != "You Know, for Search":
                    raise self._server.unreadable("it is neither Elasticsearch nor OpenSearch")
            self._dialect = OpenSearchDialect() if is_opensearch else ElasticsearchDialect()
        return self._dialect

    def _index(self, space: EmbeddingSpace) -> str:
        return collection_name(self.spec, space, parameter="index_name")


def _credentials(spec: StoreSpec) -> dict[str, str]:
    key, name, password = spec.text("api_key"), spec.text("user_name"), spec.text("password")
    if key and (name or password):
        raise StoreRefused("The store elasticsearch takes api_key, or user_name and password, not both.")
    if key:
        return {"Authorization": f"ApiKey {key}"}
    if name or password:
        return {"Authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}
    return {}


def _document(place: Place, point: Point, vector: list[float]) -> dict[str, Any]:
    return {
        "organization": str(place.organization),
        "knowledge_base": str(place.knowledge_base),
        "document": str(point.document),
        "chunk": point.chunk,
        "generation": point.generation,
        VECTOR: vector,
    }


def _conditions(
    organization: UUID,
    knowledge_bases: Sequence[UUID],
    documents: Collection[UUID] | None = None,
    chunks: Collection[int] | None = None,
) -> Conditions:
    found: Conditions = [
        {"term": {"organization": str(organization)}},
        {"terms": {"knowledge_base": [str(one) for one in knowledge_bases]}},
    ]
    if documents is not None:
        found.append({"terms": {"document": [str(one) for one in documents]}})
    if chunks is not None:
        found.append({"terms": {"chunk": list(chunks)}})
    return found


KIND = StoreKind(ElasticsearchStore)
