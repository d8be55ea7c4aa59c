"""An index of the search server, its mapping, and the few queries that it understands."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

PLAIN = {"keyword": str, "long": int, "integer": int}
MOST = 10_000


class Refused(Exception):
    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason = status, kind, reason


def _refuse(reason: str, kind: str = "parsing_exception") -> Refused:
    return Refused(400, kind, reason)


def _exactly(given: dict[str, Any], *known: str) -> None:
    if set(given) != set(known):
        raise _refuse(f"expected [{', '.join(known)}], got [{', '.join(given)}]")


@dataclass
class Index:
    """`written` becomes `shown` by a refresh. Without `length` the vectors are plain numbers, and no graph is searched."""

    flavour: str
    mappings: dict[str, Any]
    vector: str = ""
    length: int = 0
    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def guessed(cls, flavour: str) -> "Index":
        return cls(flavour, {"properties": {}})

    @classmethod
    def of_mapping(cls, flavour: str, body: dict[str, Any]) -> "Index":
        mappings = body["mappings"]
        _exactly(mappings, "dynamic", "properties")
        vectors = {name: one for name, one in mappings["properties"].items() if one["type"] not in PLAIN}
        ((name, one),) = vectors.items()
        if flavour == "opensearch":
            if body.get("settings") != {"index": {"knn": True}}:
                raise _refuse("Cannot set method parameters on an index whose setting index.knn is false", "mapper_parsing_exception")
            _exactly(one, "type", "dimension", "method")
            _exactly(one["method"], "name", "engine", "space_type")
            if (one["type"], one["method"]["engine"], one["method"]["space_type"]) != ("knn_vector", "lucene", "cosinesimil"):
                raise _refuse(f"No handler for type [{one['type']}]", "mapper_parsing_exception")
            return cls(flavour, mappings, name, one["dimension"])
        _exactly(one, "type", "dims", "index", "similarity", "index_options")
        if (one["type"], one["similarity"], one["index"], one["index_options"]) != ("dense_vector", "cosine", True, {"type": "hnsw"}):
            raise _refuse(f"No handler for type [{one['type']}]", "mapper_parsing_exception")
        if not 1 <= one["dims"] <= 4096:
            raise _refuse("The number of dimensions should be in the range [1, 4096]", "mapper_parsing_exception")
        return cls(flavour, mappings, name, one["dims"])

    def put(self, identifier: str, source: dict[str, Any]) -> bool:
        """Whether it was there already."""
        for name, value in source.items() if self.length else ():
            kind = self.mappings["properties"].get(name, {}).get("type")
            if kind is None:
                raise _refuse(f"mapping set to strict, dynamic introduction of [{name}] is not allowed", "strict_dynamic_mapping_exception")
            if kind in PLAIN and not isinstance(value, PLAIN[kind]):
                raise _refuse(f"failed to parse field [{name}] of type [{kind}]", "document_parsing_exception")
        if self.length and len(source[self.vector]) != self.length:
            found = len(source[self.vector])
            raise _refuse(f"has a different number of dimensions [{found}] than defined [{self.length}]", "document_parsing_exception")
        if self.length and not np.linalg.norm(source[self.vector]):
            raise _refuse("The [cosine] similarity does not support vectors with zero magnitude.", "document_parsing_exception")
        known = identifier in self.written
        self.written[identifier] = source
        return known

    def delete(self, identifiers: list[str]) -> None:
        for identifier in identifiers:
            self.written.pop(identifier, None)

    def refresh(self) -> None:
        self.shown = dict(self.written)

    def cosines(self, identifiers: list[str], asked: list[float]) -> np.ndarray:
        if not self.length:
            raise _refuse("failed to create query: [knn] queries are only supported on vector fields", "query_shard_exception")
        if len(asked) != self.length:
            reason = f"the query vector has a different dimension [{len(asked)}] than the index vectors [{self.length}]"
            raise _refuse(f"failed to create query: {reason}", "query_shard_exception")
        if not identifiers:
            return np.empty(0)
        rows = np.array([self.shown[one][self.vector] for one in identifiers], dtype=np.float32)
        question = np.array(asked, dtype=np.float32)
        return rows @ question / (np.linalg.norm(rows, axis=1) * np.linalg.norm(question))


def conditions_of(index: Index, query: dict[str, Any]) -> list[str]:
    """Ids of the shown documents that a query without scores matches."""
    _exactly(query, "bool")
    _exactly(query["bool"], "filter")
    filters = _checked(query["bool"]["filter"])
    return [identifier for identifier, source in index.shown.items() if all(_meets(source, one) for one in filters)]


def _checked(filters: Any) -> list[dict[str, Any]]:
    if not isinstance(filters, list):
        raise _refuse("a filter must be a list here")
    for one in filters:
        ((kind, fields),) = one.items()
        ((_, value),) = fields.items()
        if kind == "terms" and (not isinstance(value, list) or len(value) > 65_536):
            raise _refuse("[terms] query takes a list of at most 65536 values")
        if kind == "range":
            _exactly(value, "gt")
        if kind not in ("term", "terms", "range"):
            raise _refuse(f"unknown query [{kind}]")
    return filters


def _meets(source: dict[str, Any], condition: dict[str, Any]) -> bool:
    ((kind, fields),) = condition.items()
    ((name, value),) = fields.items()
    if kind == "term":
        return source.get(name) == value
    if kind == "terms":
        return source.get(name) in value
    return source[name] > value["gt"]


def search(index: Index, body: dict[str, Any], *, refuses_graph: bool) -> list[dict[str, Any]]:
    if body.pop("_source") is not False or body.pop("track_total_hits") is not False:
        raise _refuse("these searches want neither sources nor totals")
    size = body.pop("size")
    if not 0 <= size <= MOST:
        raise _refuse(f"Result window is too large, from + size must be less than or equal to: [{MOST}]", "illegal_argument_exception")
    scored = _scored(index, body, size, refuses_graph)
    sort = body.pop("sort", None)
    after = body.pop("search_after", None)
    if body:
        raise _refuse(f"Unknown key for a VALUE_STRING in [{next(iter(body))}]")
    if sort is None:
        return [{"_id": one, "_score": score} for one, score in scored[:size]]
    keys = [_keys(index.shown[one], score, sort) for one, score in scored]
    rows = sorted(((key, one) for key, (one, _) in zip(keys, scored, strict=True)), key=lambda row: row[0])
    wanted = _keys({"chunk": after[-1]}, after[0], sort) if after else None
    left = [row for row in rows if wanted is None or row[0] > wanted]
    # Sorted by something else than the score alone, a hit says its score only among its sort values.
    return [{"_id": one, "_score": None, "sort": [abs(part) for part in key]} for key, one in left[:size]]


def _keys(source: dict[str, Any], score: float, sort: list[dict[str, str]]) -> list[float]:
    known = {"_score": ("desc", -score), "chunk": ("asc", source["chunk"])}
    return [known[name][1] for one in sort for name, order in one.items() if known[name][0] == order]


def _scored(index: Index, body: dict[str, Any], size: int, refuses_graph: bool) -> list[tuple[str, float]]:
    query = body.pop("query", None)
    if "knn" in body and index.flavour == "elasticsearch":
        knn = body.pop("knn")
        _exactly(knn, "field", "query_vector", "k", "num_candidates", "filter")
        if not 1 <= knn["k"] <= knn["num_candidates"] <= MOST or knn["field"] != "vector":
            raise _refuse("[num_candidates] cannot be less than [k] or exceed [10000]", "illegal_argument_exception")
        return _nearest(index, knn["query_vector"], knn["k"], {"bool": {"filter": knn["filter"]}}, refuses_graph)
    ((kind, asked),) = query.items()
    if kind == "knn" and index.flavour == "opensearch":
        _exactly(asked, "vector")
        _exactly(asked["vector"], "vector", "k", "filter")
        if not 1 <= asked["vector"]["k"] <= MOST:
            raise _refuse("[knn] requires 0 < k <= 10000", "illegal_argument_exception")
        return _nearest(index, asked["vector"]["vector"], asked["vector"]["k"], asked["vector"]["filter"], refuses_graph)
    if kind == "script_score":
        _exactly(asked, "query", "script")
        found = conditions_of(index, asked["query"])
        cosines = index.cosines(found, _vector_of_script(index, asked["script"]))
        return [(one, float(score)) for one, score in zip(found, cosines + 1, strict=True)]
    return [(one, 0.0) for one in conditions_of(index, query)]


def _nearest(index: Index, vector: list[float], k: int, query: dict[str, Any], refuses_graph: bool) -> list[tuple[str, float]]:
    found = conditions_of(index, query)
    scores = (1 + index.cosines(found, vector)) / 2
    best = sorted(zip(found, scores.tolist(), strict=True), key=lambda row: -row[1])[:k]
    return best[: len(best) // 2] if refuses_graph else best


def _vector_of_script(index: Index, script: dict[str, Any]) -> list[float]:
    params = script["params"]
    if index.flavour == "opensearch":
        _exactly(script, "lang", "source", "params")
        _exactly(params, "field", "query_value", "space_type")
        if (script["lang"], script["source"], params["field"], params["space_type"]) == ("knn", "knn_score", "vector", "cosinesimil"):
            return params["query_value"]
    else:
        _exactly(script, "source", "params")
        _exactly(params, "query_vector")
        if script["source"] == "cosineSimilarity(params.query_vector, 'vector') + 1.0":
            return params["query_vector"]
    raise _refuse("compile error", "script_exception")
