"""Vectors of chunks: written in blocks, searched exactly while that is quick and by HNSW above.

Measured: a filtered HNSW finds nothing for a small knowledge base in a large space, and an exact scan of 20,000 vectors takes a few
milliseconds. So the number of rows in scope and its share of the index decide, and an HNSW answer that is short is asked again exactly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from uuid import UUID

import numpy as np
from django.db import connection
from django.db.models import QuerySet
from numpy.typing import ArrayLike
from pgvector import HalfVector
from psycopg import sql

from config.errors import InvalidInput
from kb.models.documents import Document
from kb.models.spaces import EmbeddingSpace
from kb.stores import wire
from kb.stores.base import VectorMatches
from kb.stores.copying import copy_rows
from kb.stores.planning import BY_ARRAY, BY_DOCUMENT, fetch_all
from kb.stores.scope import Scope
from kb.stores.tables import LEAVES, embedding_name, embedding_table, signs, space_name

EXACT_ROWS = 20_000
# Chunks of chosen documents lie apart and are looked up: measured at 50,000, the index overtakes at some 5,000.
EXACT_ROWS_OF_DOCUMENTS = 5_000
EXACT_ROWS_AT_MOST = 100_000
MAX_SCAN_TUPLES = 20_000
LEAST_EF_SEARCH = 100
# pgvector's own limit.
MOST_EF_SEARCH = 1000
# Signs tell directions roughly: so many times as many candidates as are wanted are measured by their vectors.
OVERFETCH = 8
LEAST_OVERFETCH = 200

EXACT = "exact"
HNSW = "hnsw"
BINARY = "hnsw of signs"
HNSW_THEN_EXACT = "hnsw, then exact"
PLANS = (EXACT, HNSW, BINARY, HNSW_THEN_EXACT)

# How long it is trusted that an index stands or not. One that went costs a slow search, a new one is used a little late.
LEAVES_SECONDS = 10.0
_LEAVES_KEPT = 1024
_leaves_of: dict[tuple[int, tuple[UUID, ...]], tuple[float, list["Leaf"]]] = {}

_COLUMNS = ("organization", "space", "kb", "chunk", "vector")
_ROWS_A_BLOCK = 1000


@dataclass(frozen=True, slots=True)
class VectorRow:
    chunk: int
    vector: ArrayLike | HalfVector


@dataclass(frozen=True, slots=True)
class Leaf:
    """One hash partition that holds knowledge bases in scope: its size by the planner's statistics, and whether an HNSW index of its
    vectors, or of their signs, is ready."""

    rows: int
    indexed: bool
    binary: bool = False


def add_vectors(*, organization: UUID, space: EmbeddingSpace, knowledge_base: UUID, rows: Sequence[VectorRow]) -> int:
    """Write vectors of chunks, anew where they have one in this space. Needs the transaction in which the chunks are written."""
    if not rows:
        return 0
    blocks = [
        wire.vector_rows(
            organization=organization,
            space=space.pk,
            knowledge_base=knowledge_base,
            chunks=[row.chunk for row in block],
            vectors=_checked([row.vector for row in block], space.dimension),
        )
        for block in (rows[start : start + _ROWS_A_BLOCK] for start in range(0, len(rows), _ROWS_A_BLOCK))
    ]
    # One statement for both: what stood there goes, and the space is noted as used.
    noted = sql.SQL(
        "WITH before AS (DELETE FROM {} WHERE space = %s AND kb = %s AND chunk = ANY(%s))"
        " INSERT INTO embedding_use (organization, kb, space) SELECT %s, %s, %s"
        " WHERE NOT EXISTS (SELECT FROM embedding_use WHERE kb = %s AND space = %s) ON CONFLICT DO NOTHING"
    ).format(embedding_table(space.dimension))
    used = [knowledge_base, space.pk]
    with connection.cursor() as cursor:
        cursor.execute(noted, [space.pk, knowledge_base, [row.chunk for row in rows], organization, *used, *used])
    copy_rows(embedding_name(space.dimension), _COLUMNS, blocks)
    return len(rows)


def remove_vectors(*, organization: UUID, space: EmbeddingSpace, knowledge_base: UUID, batch: int = 5000) -> int:
    """Remove up to `batch` vectors of a knowledge base from a space it left; how many. Call it, a transaction each, until it returns 0."""
    table = embedding_table(space.dimension)
    statement = sql.SQL(
        "DELETE FROM {table} WHERE space = %s AND kb = %s AND chunk = ANY(ARRAY("
        "SELECT chunk FROM {table} WHERE space = %s AND kb = %s AND organization = %s ORDER BY chunk LIMIT %s))"
    ).format(table=table)
    with connection.cursor() as cursor:
        cursor.execute(statement, [space.pk, knowledge_base, space.pk, knowledge_base, organization, batch])
        removed = cursor.rowcount
        if removed == 0:
            cursor.execute(
                "DELETE FROM embedding_use WHERE organization = %s AND kb = %s AND space = %s", [organization, knowledge_base, space.pk]
            )
    return removed


def search_vectors(
    *,
    organization: UUID,
    space: EmbeddingSpace,
    knowledge_bases: Sequence[UUID],
    query: np.ndarray,
    limit: int,
    documents: Sequence[UUID] | QuerySet[Document] | None = None,
    sources: Sequence[UUID] | None = None,
    ef_search: int | None = None,
    size: int | None = None,
) -> VectorMatches:
    """The nearest chunks of several knowledge bases that share a space. Fewer than `limit` come back only when no more exist.

    `ef_search` is how many candidates an index keeps while it looks, 1 to 1,000: more find more, and take longer. None: twice the
    limit, at least 100. `size` is how many chunks the knowledge bases hold, where the caller knows.
    """
    vector = wire.halfvec_text(_checked([query], space.dimension)[0])
    scope, rows_in_scope = Scope(organization, knowledge_bases, documents, sources).settle(size)
    exact_rows = EXACT_ROWS_OF_DOCUMENTS if scope.is_narrowed else EXACT_ROWS
    leaves = _known_leaves(space, scope) if rows_in_scope > exact_rows else []
    if not use_index(rows_in_scope, limit=limit, leaves=leaves):
        return VectorMatches(_search_exactly(scope, space, vector, limit), True, EXACT)
    binary = any(leaf.binary for leaf in leaves) and not any(leaf.indexed for leaf in leaves)
    search_index = _search_signs if binary else _search_index
    found = search_index(scope, space, vector, limit, ef_search)
    if len(found) < limit:
        return VectorMatches(_search_exactly(scope, space, vector, limit), True, HNSW_THEN_EXACT)
    return VectorMatches(found, False, BINARY if binary else HNSW)


def ef_for(limit: int, asked: int | None = None) -> int:
    """How many candidates HNSW keeps while it looks for `limit`; an index of signs looks for more: OVERFETCH times the limit."""
    return min(asked or max(LEAST_EF_SEARCH, 2 * limit), MOST_EF_SEARCH)


def use_index(rows_in_scope: int, *, limit: int, leaves: Sequence[Leaf]) -> bool:
    """Whether HNSW is worth asking for a large scope. Pure: below a share of the index its scan would end before `limit` rows turned up."""
    if not any(leaf.indexed or leaf.binary for leaf in leaves):
        return False
    scanned = limit * max(sum(leaf.rows for leaf in leaves), rows_in_scope) / rows_in_scope
    return not (scanned > MAX_SCAN_TUPLES / 2 and rows_in_scope <= EXACT_ROWS_AT_MOST)


def _search_exactly(scope: Scope, space: EmbeddingSpace, vector: str, limit: int) -> list[tuple[int, float]]:
    condition, parameters = scope.condition_of_scan()
    # `+ 0` keeps the planner from answering with an HNSW index.
    statement = (
        f"SELECT chunk, 1 - (vector <=> %s::halfvec) FROM {embedding_name(space.dimension)}"  # noqa: S608 - names are ours, values are parameters
        f" WHERE space = %s AND {condition} ORDER BY (vector <=> %s::halfvec) + 0, chunk LIMIT %s"
    )
    return _run(statement, [vector, space.pk, *parameters, vector, limit], BY_ARRAY if scope.is_narrowed else {})


def _search_index(scope: Scope, space: EmbeddingSpace, vector: str, limit: int, ef_search: int | None = None) -> list[tuple[int, float]]:
    condition, parameters = scope.condition()
    # Relaxed order is nearly sorted: sorted again here.
    statement = (
        f"WITH near AS MATERIALIZED (SELECT chunk, vector <=> %s::halfvec AS distance FROM {embedding_name(space.dimension)}"  # noqa: S608 - as above
        f" WHERE space = %s AND {condition} ORDER BY vector <=> %s::halfvec LIMIT %s)"
        " SELECT chunk, 1 - distance FROM near ORDER BY distance, chunk"
    )
    return _run(statement, [vector, space.pk, *parameters, vector, limit], _looking(scope, ef_for(limit, ef_search)))


def _search_signs(scope: Scope, space: EmbeddingSpace, vector: str, limit: int, ef_search: int | None = None) -> list[tuple[int, float]]:
    """By an index of signs: more candidates than wanted, and of those the nearest by their vectors."""
    condition, parameters = scope.condition()
    candidates = max(OVERFETCH * limit, LEAST_OVERFETCH, ef_search or 0)
    asked = signs(space.dimension, "%s::halfvec")
    statement = (
        f"WITH near AS MATERIALIZED (SELECT chunk, vector FROM {embedding_name(space.dimension)}"  # noqa: S608 - as above
        f" WHERE space = %s AND {condition} ORDER BY {signs(space.dimension)} <~> {asked} LIMIT %s)"
        " SELECT chunk, 1 - (vector <=> %s::halfvec) FROM near ORDER BY vector <=> %s::halfvec, chunk LIMIT %s"
    )
    settings = _looking(scope, ef_for(candidates // 2, ef_search))
    return _run(statement, [space.pk, *parameters, vector, candidates, vector, vector, limit], settings)


def _looking(scope: Scope, ef: int) -> dict[str, str]:
    settings = {
        "hnsw.ef_search": str(ef),
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.max_scan_tuples": str(MAX_SCAN_TUPLES),
    }
    return settings | (BY_DOCUMENT if scope.is_narrowed else {})


def _run(statement: str, parameters: list[object], settings: dict[str, str]) -> list[tuple[int, float]]:
    # A vector of zeros has no direction: its distance is NaN.
    return [(chunk, similarity) for chunk, similarity in fetch_all(statement, parameters, settings) if not math.isnan(similarity)]


def _known_leaves(space: EmbeddingSpace, scope: Scope) -> list[Leaf]:
    """Asked of the catalogue once in a while: it takes as long as the search of an index, and an index stands for months."""
    key, now = (space.pk, tuple(sorted(scope.ids()))), monotonic()
    known = _leaves_of.get(key)
    if known is None or known[0] < now:
        if len(_leaves_of) >= _LEAVES_KEPT:
            _leaves_of.clear()
        known = _leaves_of[key] = (now + LEAVES_SECONDS, _leaves(space, scope))
    return known[1]


def forget_leaves() -> None:
    """After an index was built or dropped in this process; others see it some seconds later."""
    _leaves_of.clear()


def _leaves(space: EmbeddingSpace, scope: Scope) -> list[Leaf]:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT greatest(c.reltuples, 0)::bigint, coalesce(known.whole, false), coalesce(known.signs, false)
            FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
            CROSS JOIN LATERAL (
                SELECT bool_or(i.indexprs IS NULL) AS whole, bool_or(i.indexprs IS NOT NULL) AS signs
                FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am a ON a.oid = x.relam
                WHERE i.indrelid = c.oid AND i.indisvalid AND a.amname = 'hnsw'
            ) known
            WHERE h.inhparent = to_regclass(%s) AND EXISTS (
                SELECT FROM unnest(%s::uuid[]) kb
                WHERE satisfies_hash_partition(h.inhparent, %s, substring(c.relname FROM '_h([0-9]+)$')::int, kb)
            )
            """,
            [space_name(space.dimension, space.pk), scope.ids(), LEAVES],
        )
        return [Leaf(*row) for row in cursor.fetchall()]


def _checked(vectors: Sequence[ArrayLike | HalfVector], dimension: int) -> np.ndarray:
    try:
        values = np.array([v.to_numpy() if isinstance(v, HalfVector) else v for v in vectors], dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"Vectors must be {dimension} numbers each: {error}.") from error
    if values.ndim != 2 or values.shape[1] != dimension:
        found = values.shape[1] if values.ndim == 2 else "something else"
        raise InvalidInput(
            f"The space holds vectors of {dimension} dimensions, these have {found}. Check the model's registered dimension."
        )
    if not np.isfinite(values).all() or np.abs(values).max(initial=0.0) > wire.LARGEST_HALF:
        raise InvalidInput("A vector holds a number that is not finite or too large for half precision. Check the embedding model.")
    return values
