"""MongoDB Atlas by its official client: one collection for each space, documents numbered by chunk, one vector search index in it.

The index follows the collection by itself, a moment later, and a search of an index that is absent or unfinished finds nothing and says
nothing. So writes wait until a search shows them, and a search that finds too little asks how the index stands.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pymongo
from bson.binary import Binary, BinaryVectorDtype
from pymongo import MongoClient, ReplaceOne
from pymongo.errors import BulkWriteError, ConnectionFailure, ExecutionTimeout, OperationFailure, PyMongoError
from pymongo.operations import SearchIndexModel

from config.addresses import AddressRefused
from kb.models.spaces import EmbeddingSpace
from kb.stores import base
from kb.stores.base import Place, Point, StoreRefused, StoreSpec, StoreUnavailable, VectorMatches, VectorQuery, collection_name, directed
from kb.stores.mongodb_connections import open_client
from kb.stores.rest import batches, matches_of

_BATCH = 256
MOST = 10_000
_CANDIDATES, _FEWEST_CANDIDATES = 10, 100
_FILTERS = ("organization", "knowledge_base", "document", "chunk", "written")
_NO_COLLECTION, _COLLECTION_EXISTS, _INDEX_EXISTS = 26, 48, 68
# Time over, a server that is stepping down or overloaded.
_PASSING = frozenset({50, 91, 112, 189, 202, 262, 10107, 11600, 11602, 13435, 13436, 16500})
_CREDENTIALS = frozenset({13, 18, 8000})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


class AtlasStore:
    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec
        self._index = spec.text("index_name", "lectern_vectors")
        self._opened: MongoClient | None = None
        self._lock = Lock()

    def add(self, place: Place, points: Sequence[Point]) -> None:
        rows = directed(points, place.space.dimension)
        if not rows:
            return
        with self._asking(base.WRITE_DEADLINE) as until:
            self._provide(place.space, until)
            for batch in batches(rows, _BATCH):
                mark = uuid4().hex
                documents = [_document(place, point, vector, mark) for point, vector in batch]
                self._collection(place.space).bulk_write(
                    [ReplaceOne({"_id": one["_id"]}, one, upsert=True) for one in documents], ordered=False
                )
                self._await(place.space, {"written": {"$eq": mark}}, len(documents), until)

    def remove(self, place: Place, chunks: Collection[int] | None) -> None:
        with self._asking(base.WRITE_DEADLINE) as until:
            for batch in [None] if chunks is None else batches(chunks, MOST):
                scope = _scope(place.organization, [place.knowledge_base])
                narrowed = scope if batch is None else scope | {"chunk": {"$in": batch}}
                if self._collection(place.space).delete_many(narrowed).deleted_count:
                    self._await(place.space, narrowed, 0, until)

    def search(self, query: VectorQuery) -> VectorMatches:
        asked = np.asarray(query.vector, dtype=np.float32)
        length = float(np.linalg.norm(asked))
        if query.asks_nothing or not length:
            return VectorMatches([], True, "mongodb-atlas")
        vector = (asked / length).tolist()
        conditions = _scope(query.organization, query.knowledge_bases)
        if query.documents is not None:
            conditions["document"] = {"$in": [str(one) for one in query.documents]}
        if query.chunks is not None:
            conditions["chunk"] = {"$in": list(query.chunks)}
        with self._asking(base.SEARCH_DEADLINE):
            if query.chunks is None and query.limit <= MOST:
                candidates = min(MOST, max(_FEWEST_CANDIDATES, _CANDIDATES * query.limit))
                rows = self._nearest(query.space, vector, query.limit, conditions, {"numCandidates": candidates})
                if len(rows) == query.limit:
                    return VectorMatches(rows, False, "mongodb-atlas")
            rows = self._nearest(query.space, vector, query.limit, conditions, {"exact": True})
            if len(rows) < query.limit:
                self._require_index(query.space)
            return VectorMatches(rows, True, "mongodb-atlas, exact")

    def chunks_after(self, place: Place, after: int, limit: int) -> list[int]:
        scope = _scope(place.organization, [place.knowledge_base]) | {"chunk": {"$gt": after}}
        with self._asking(base.SEARCH_DEADLINE):
            found = self._collection(place.space).find(scope, {"_id": False, "chunk": True}).sort("chunk", 1).limit(limit)
            return [int(one["chunk"]) for one in found]

    def _nearest(
        self, space: EmbeddingSpace, vector: list[float], limit: int, conditions: dict[str, Any], way: dict[str, Any]
    ) -> list[tuple[int, float]]:
        stage = {"index": self._index, "path": "vector", "queryVector": vector, "limit": limit, "filter": conditions, **way}
        shown = {"_id": True, "score": {"$meta": "vectorSearchScore"}}
        rows = self._collection(space).aggregate([{"$vectorSearch": stage}, {"$project": shown}])
        return matches_of((row["_id"], 2 * row["score"] - 1) for row in rows)

    def _await(self, space: EmbeddingSpace, conditions: dict[str, Any], number: int, until: float) -> None:
        """Until a search shows so many of these points; the deadline of the call ends it."""
        somewhere = [1.0] + [0.0] * (space.dimension - 1)
        pause = _FIRST_PAUSE
        while len(self._nearest(space, somewhere, max(number, 1), conditions, {"exact": True})) != number:
            _pause(pause, until, "its index has not caught up with what was written")
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _provide(self, space: EmbeddingSpace, until: float) -> None:
        """The collection and its index are there afterwards, and answer. May be raced: whoever comes second finds them there."""
        if self._found_index(space) is None:
            name, collection = self._name(space), self._collection(space)
            with _unless(_COLLECTION_EXISTS):
                self._database().create_collection(name, check_exists=False)
            collection.create_index([("organization", 1), ("knowledge_base", 1), ("chunk", 1)])
            fields = [{"type": "vector", "path": "vector", "numDimensions": space.dimension, "similarity": "cosine"}]
            fields += [{"type": "filter", "path": path} for path in _FILTERS]
            with _unless(_INDEX_EXISTS):
                collection.create_search_index(SearchIndexModel({"fields": fields}, name=self._index, type="vectorSearch"))
        pause = _FIRST_PAUSE
        while not (index := self._found_index(space) or {}).get("queryable"):
            if index.get("status") == "FAILED":
                raise StoreRefused(f"The store mongodb-atlas could not build the index {self._index}. Look at it in Atlas, and delete it.")
            _pause(pause, until, "its index is still being built")
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._check(space, index)

    def _check(self, space: EmbeddingSpace, index: dict[str, Any]) -> None:
        fields = (index.get("latestDefinition") or {}).get("fields") or []
        lengths = [one.get("numDimensions") for one in fields if one.get("type") == "vector" and one.get("path") == "vector"]
        if lengths != [space.dimension]:
            raise StoreRefused(
                f"The store mongodb-atlas: the index {self._index} holds vectors of {lengths[0] if lengths else 'no'} dimensions, the "
                f"space has {space.dimension}. Give another index_name or collection_name."
            )

    def _require_index(self, space: EmbeddingSpace) -> None:
        index = self._found_index(space)
        if index is None:
            raise StoreRefused(
                f"The store mongodb-atlas has no index {self._index} in {self._name(space)} (any more). Restore it, or purge the "
                "knowledge base and ingest it again."
            )
        if not index.get("queryable"):
            raise StoreUnavailable(f"The store mongodb-atlas is still building the index {self._index}. Ask again in a minute.")

    def _found_index(self, space: EmbeddingSpace) -> dict[str, Any] | None:
        with _unless(_NO_COLLECTION):
            return next(iter(self._collection(space).list_search_indexes(self._index)), None)
        return None

    def _name(self, space: EmbeddingSpace) -> str:
        return collection_name(self.spec, space)

    def _collection(self, space: EmbeddingSpace) -> Any:
        return self._database()[self._name(space)]

    def _database(self) -> Any:
        with self._lock:  # not before it is asked: a client does not outlive a fork
            self._opened = self._opened or open_client(self.spec.text("connection_string"))
        return self._opened[self.spec.text("database_name", "lectern")]

    @contextmanager
    def _asking(self, seconds: float) -> Iterator[float]:
        """Inside, everything together ends within the seconds (given: when that is), and failures of the client leave as a store's."""
        try:
            with pymongo.timeout(seconds):
                yield time.monotonic() + seconds
        except BulkWriteError as error:
            failed = error.details.get("writeErrors") or error.details.get("writeConcernErrors") or [{}]
            code, why = failed[0].get("code"), str(failed[0].get("errmsg", ""))[:300]
            kind = StoreUnavailable if code in _PASSING else StoreRefused
            raise kind(f"The store mongodb-atlas did not write {len(failed)} points (code {code}: {why}).") from error
        except ConnectionFailure as error:
            refused = self._refused_address()
            if refused is not None:
                raise StoreRefused(f"The store mongodb-atlas failed: {refused.message}") from refused
            raise StoreUnavailable(f"The store mongodb-atlas cannot be reached in time: {_words(error)}") from error
        except AddressRefused as error:
            raise StoreRefused(f"The store mongodb-atlas failed: {error.message}") from error
        except OperationFailure as error:
            if error.timeout or isinstance(error, ExecutionTimeout) or error.code in _PASSING:
                raise StoreUnavailable(f"The store mongodb-atlas is late or overloaded: {_words(error)}") from error
            advice = " Check its credential." if error.code in _CREDENTIALS else ""
            raise StoreRefused(f"The store mongodb-atlas refused the request (code {error.code}): {_words(error)}{advice}") from error
        except PyMongoError as error:
            kind = StoreUnavailable if error.timeout else StoreRefused
            raise kind(f"The store mongodb-atlas failed: {type(error).__name__}: {_words(error)}") from error

    def _refused_address(self) -> AddressRefused | None:
        """Where the client gave up because every host that it was told of is refused: the reason."""
        hosts = self._opened.topology_description.server_descriptions().values() if self._opened else ()
        return next((host.error for host in hosts if isinstance(host.error, AddressRefused)), None)


def _pause(seconds: float, until: float, why: str) -> None:
    if time.monotonic() + seconds >= until:
        raise StoreUnavailable(f"The store mongodb-atlas did not answer in time: {why}.")
    time.sleep(seconds)


@contextmanager
def _unless(code: int) -> Iterator[None]:
    """An operation that may fail with this code, and then was not needed."""
    try:
        yield
    except OperationFailure as error:
        if error.code != code:
            raise


def _words(error: Exception) -> str:
    return str(error).partition(", full error")[0].partition(", Timeout:")[0][:300]


def _scope(organization: UUID, knowledge_bases: Sequence[UUID]) -> dict[str, Any]:
    return {"organization": {"$eq": str(organization)}, "knowledge_base": {"$in": [str(one) for one in knowledge_bases]}}


def _document(place: Place, point: Point, vector: list[float], mark: str) -> dict[str, Any]:
    return {
        "_id": point.chunk,
        "chunk": point.chunk,
        "organization": str(place.organization),
        "knowledge_base": str(place.knowledge_base),
        "document": str(point.document),
        "generation": point.generation,
        "written": mark,
        "vector": Binary.from_vector(vector, BinaryVectorDtype.FLOAT32),
    }
