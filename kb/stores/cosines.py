"""Cosines of chunks that another search named: with both scores known, a fused list does not depend on how deep each side looked."""

import math
from collections.abc import Sequence
from uuid import UUID

import numpy as np
from django.db import connection
from psycopg import sql

from kb.models.spaces import EmbeddingSpace
from kb.stores import wire
from kb.stores.tables import embedding_table


def read_cosines(
    *, organization: UUID, space: EmbeddingSpace, knowledge_bases: Sequence[UUID], query: np.ndarray, chunks: Sequence[int]
) -> dict[int, float]:
    """By chunk id; chunks that have no vector in this space are left out."""
    if not chunks:
        return {}
    statement = sql.SQL(
        "SELECT chunk, 1 - (vector <=> %s::halfvec) FROM {table}"
        " WHERE space = %s AND kb = ANY(%s) AND chunk = ANY(%s) AND organization = %s"
    ).format(table=embedding_table(space.dimension))
    with connection.cursor() as cursor:
        cursor.execute(statement, [wire.halfvec_text(query), space.pk, list(knowledge_bases), list(chunks), organization])
        return {chunk: similarity for chunk, similarity in cursor.fetchall() if not math.isnan(similarity)}
