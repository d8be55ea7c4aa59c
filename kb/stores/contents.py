"""What knowledge bases hold, read from the statistics: one statement, whatever their size."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

_CONTENTS = """
SELECT counted.kb, sum(counted.chunks)::bigint, sum(counted.length)::bigint,
       coalesce((SELECT array_agg(u.space) FROM embedding_use u JOIN kb_knowledgebase k ON k.id = u.kb AND k.space_id = u.space
                 WHERE u.organization = %(organization)s AND u.kb = counted.kb), '{}'::bigint[]),
       (SELECT jsonb_object_agg(s.space, s.store) FROM store_use s WHERE s.organization_id = %(organization)s AND s.kb = counted.kb)
FROM (
    SELECT kb, chunks, length FROM lexical_total WHERE organization = %(organization)s AND kb = ANY(%(kbs)s)
    UNION ALL
    SELECT kb, chunks, length FROM lexical_delta WHERE organization = %(organization)s AND kb = ANY(%(kbs)s)
) counted GROUP BY counted.kb
"""


@dataclass(frozen=True, slots=True)
class Contents:
    """Chunks and words that answer at this moment, and the space that they answer from: one, or none before the first vector.

    Read once for a search, so that it sees one space entirely, whatever is switched meanwhile.

    `stores`: the spaces whose vectors lie in a store over a network, each with its type and parameters."""

    chunks: int
    length: int
    spaces: tuple[int, ...]
    stores: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


NOTHING = Contents(0, 0, ())


def read_contents(*, organization: UUID, knowledge_bases: Sequence[UUID]) -> dict[UUID, Contents]:
    """By knowledge base, those of another organization and those without chunks left out."""
    with connection.cursor() as cursor:
        cursor.execute(_CONTENTS, {"organization": organization, "kbs": list(knowledge_bases)})
        return {kb: _contents(*row) for kb, *row in cursor.fetchall() if row[0] > 0}


def _contents(chunks: int, length: int, spaces: list[int], stores: str | None) -> Contents:
    external = {int(space): store for space, store in json.loads(stores).items()} if stores else {}
    return Contents(chunks, length, tuple(sorted({*spaces, *external})), external)


def holds_private(knowledge_bases: Sequence[UUID]) -> bool:
    """Whether there are documents that not everybody may find: mostly there are none, and then no search need ask whose they are."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM kb_document WHERE knowledge_base_id = ANY(%s) AND visibility = 'private')", [list(knowledge_bases)]
        )
        return cursor.fetchone()[0]
