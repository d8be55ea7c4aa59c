"""What Elasticsearch and OpenSearch say differently: the field of the vectors, the query for the nearest, the scan of all."""

from typing import Any, Protocol

Conditions = list[dict[str, Any]]

VECTOR = "vector"
# Candidates of each shard for a result; what the servers allow at most is 10,000.
_CANDIDATES = 2
_FEWEST_CANDIDATES = 100
MOST = 10_000
_FIELDS = {
    "organization": {"type": "keyword"},
    "knowledge_base": {"type": "keyword"},
    "document": {"type": "keyword"},
    "chunk": {"type": "long"},
    "generation": {"type": "integer"},
}


class Dialect(Protocol):
    """Scores of `nearest` are (1 + cosine) / 2, those of `scan` 1 + cosine: a score is never negative."""

    def index(self, dimension: int) -> dict[str, Any]:
        """The body that makes an index for vectors of this length."""

    def length_of(self, field: dict[str, Any]) -> int | None:
        """The dimension of a mapped field; None where it is no field for vectors."""

    def nearest(self, vector: list[float], limit: int, conditions: Conditions) -> dict[str, Any]:
        """By the graph, among what meets the conditions."""

    def scan(self, vector: list[float], conditions: Conditions) -> dict[str, Any]:
        """Exactly, of all that meets the conditions."""


class ElasticsearchDialect:
    """From 8.12 on. Vectors are kept as they are (`hnsw`): cosines of quantised ones differ, and lowest scores are compared with them."""

    def index(self, dimension: int) -> dict[str, Any]:
        field = {"type": "dense_vector", "dims": dimension, "index": True, "similarity": "cosine", "index_options": {"type": "hnsw"}}
        return {"mappings": {"dynamic": "strict", "properties": {**_FIELDS, VECTOR: field}}}

    def length_of(self, field: dict[str, Any]) -> int | None:
        return field.get("dims") if field.get("type") == "dense_vector" else None

    def nearest(self, vector: list[float], limit: int, conditions: Conditions) -> dict[str, Any]:
        candidates = min(MOST, max(_FEWEST_CANDIDATES, _CANDIDATES * limit))
        knn = {"field": VECTOR, "query_vector": vector, "k": limit, "num_candidates": candidates, "filter": conditions}
        return {"knn": knn}

    def scan(self, vector: list[float], conditions: Conditions) -> dict[str, Any]:
        script = {"source": f"cosineSimilarity(params.query_vector, '{VECTOR}') + 1.0", "params": {"query_vector": vector}}
        return {"query": {"script_score": {"query": {"bool": {"filter": conditions}}, "script": script}}}


class OpenSearchDialect:
    """From 2.4 on: only its engine `lucene` applies conditions while it searches, and not afterwards."""

    def index(self, dimension: int) -> dict[str, Any]:
        method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
        field = {"type": "knn_vector", "dimension": dimension, "method": method}
        return {"settings": {"index": {"knn": True}}, "mappings": {"dynamic": "strict", "properties": {**_FIELDS, VECTOR: field}}}

    def length_of(self, field: dict[str, Any]) -> int | None:
        return field.get("dimension") if field.get("type") == "knn_vector" else None

    def nearest(self, vector: list[float], limit: int, conditions: Conditions) -> dict[str, Any]:
        return {"query": {"knn": {VECTOR: {"vector": vector, "k": limit, "filter": {"bool": {"filter": conditions}}}}}}

    def scan(self, vector: list[float], conditions: Conditions) -> dict[str, Any]:
        params = {"field": VECTOR, "query_value": vector, "space_type": "cosinesimil"}
        script = {"lang": "knn", "source": "knn_score", "params": params}
        return {"query": {"script_score": {"query": {"bool": {"filter": conditions}}, "script": script}}}
