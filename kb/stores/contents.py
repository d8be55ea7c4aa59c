"""What knowledge bases hold, read from the statistics: one statement, whatever their size."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

_CONTENTS = """
SELECT counted.kb, sum(counted.chunks)::bigint, sum(counted.length)::bigint,
       coalesce((SELECT array_agg(u.space ORDER BY u.space) FROM embedding_use u
                 WHERE u.organization = %(organization)s AND u.kb = counted.kb), '{}'::bigint[])
FROM (
    SELECT kb, chunks, length FROM lexical_total WHERE organization = %(organization)s AND kb = ANY(%(kbs)s)
    UNION ALL
    SELECT kb, chunks, length FROM lexical_delta WHERE organization = %(organization)s AND kb = ANY(%(kbs)s)
) counted GROUP BY counted.kb
"""


@dataclass(frozen=True, slots=True)
class Contents:
    """Chunks and words that answer at this moment, and the spaces that hold their vectors: two during a change of model."""

    chunks: int
    length: int
    spaces: tuple[int, ...]


NOTHING = Contents(0, 0, ())


def read_contents(*, organization: UUID, knowledge_bases: Sequence[UUID]) -> dict[UUID, Contents]:
    """By knowledge base, those of another organization and those without chunks left out."""
    with connection.cursor() as cursor:
        cursor.execute(_CONTENTS, {"organization": organization, "kbs": list(knowledge_bases)})
        return {kb: Contents(chunks, length, tuple(spaces)) for kb, chunks, length, spaces in cursor.fetchall() if chunks > 0}
