"""How near chunks are to each other, by their stored vectors."""

import math
from collections.abc import Sequence
from uuid import UUID

from django.db import connection
from psycopg import sql

from kb.models.spaces import EmbeddingSpace
from kb.stores.tables import embedding_table


def read_pairs(
    *, organization: UUID, space: EmbeddingSpace, knowledge_bases: Sequence[UUID], chunks: Sequence[int]
) -> dict[tuple[int, int], float]:
    """Cosines by (smaller chunk id, larger chunk id); pairs of which one has no vector in this space are left out."""
    if len(chunks) < 2:
        return {}
    statement = sql.SQL(
        "WITH chosen AS MATERIALIZED (SELECT chunk, vector FROM {table}"
        " WHERE space = %s AND kb = ANY(%s) AND chunk = ANY(%s) AND organization = %s)"
        " SELECT a.chunk, b.chunk, 1 - (a.vector <=> b.vector) FROM chosen a JOIN chosen b ON a.chunk < b.chunk"
    ).format(table=embedding_table(space.dimension))
    with connection.cursor() as cursor:
        cursor.execute(statement, [space.pk, list(knowledge_bases), list(chunks), organization])
        return {(one, other): cosine for one, other, cosine in cursor.fetchall() if not math.isnan(cosine)}
