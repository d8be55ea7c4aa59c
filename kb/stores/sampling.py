"""For a look at what the index of vectors loses: samples of stored vectors and documents, and the exact answer beside the index's."""

import math
from collections.abc import Sequence
from uuid import UUID

import numpy as np
from django.db import connection
from pgvector import HalfVector
from psycopg import sql

from kb.models.spaces import EmbeddingSpace
from kb.stores.planning import BY_ARRAY, fetch_all
from kb.stores.tables import embedding_table


def sample_vectors(*, organization: UUID, space: EmbeddingSpace, knowledge_base: UUID, count: int, seed: int) -> list[np.ndarray]:
    """Stored vectors of a knowledge base, by chance but the same for the same seed and content. Those of zeros have no direction."""
    statement = sql.SQL(
        "SELECT vector::text FROM {table}"
        " WHERE space = %(space)s AND kb = %(kb)s AND organization = %(organization)s AND chunk = ANY(ARRAY("
        "SELECT chunk FROM {table} WHERE space = %(space)s AND kb = %(kb)s AND organization = %(organization)s"
        " ORDER BY hashint8extended(chunk, %(seed)s) LIMIT %(count)s))"
    ).format(table=embedding_table(space.dimension))
    named = {"space": space.pk, "kb": knowledge_base, "organization": organization, "seed": seed, "count": count}
    with connection.cursor() as cursor:
        cursor.execute(statement, named)
        vectors = [HalfVector.from_text(text).to_numpy().astype(np.float32) for (text,) in cursor.fetchall()]
    return [vector for vector in vectors if vector.any()]


def sample_documents(*, organization: UUID, space: EmbeddingSpace, knowledge_base: UUID, count: int, seed: int) -> list[UUID]:
    """Documents with chunks in the space, by chance as above."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM kb_document WHERE organization_id = %s AND knowledge_base_id = %s AND space_id = %s AND chunk_count > 0"
            " ORDER BY uuid_hash_extended(id, %s) LIMIT %s",
            [organization, knowledge_base, space.pk, seed, count],
        )
        return [row[0] for row in cursor.fetchall()]


def search_exactly(
    *,
    organization: UUID,
    space: EmbeddingSpace,
    knowledge_base: UUID,
    query: np.ndarray,
    limit: int,
    documents: Sequence[UUID] | None = None,
) -> list[tuple[int, float]]:
    """(chunk id, cosine), best first, of all or of some documents, whatever indexes there are: what a search is measured by."""
    narrowed = sql.SQL(
        "" if documents is None else " AND chunk = ANY(ARRAY(SELECT id FROM kb_chunk WHERE document_id = ANY(%(documents)s)))"
    )
    # `+ 0` keeps the planner from answering with an HNSW index.
    statement = sql.SQL(
        "SELECT chunk, 1 - (vector <=> %(vector)s::halfvec) FROM {table}"
        " WHERE space = %(space)s AND organization = %(organization)s AND kb = %(kb)s{narrowed}"
        " ORDER BY (vector <=> %(vector)s::halfvec) + 0, chunk LIMIT %(limit)s"
    ).format(table=embedding_table(space.dimension), narrowed=narrowed)
    named = {"vector": HalfVector(query).to_text(), "space": space.pk, "organization": organization, "kb": knowledge_base, "limit": limit}
    given = {**named, "documents": None if documents is None else list(documents)}
    rows = fetch_all(statement.as_string(None), given, {} if documents is None else BY_ARRAY)
    return [(chunk, cosine) for chunk, cosine in rows if not math.isnan(cosine)]
