"""Which terms chunks hold, by hash: what an explanation of their words is read from."""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db import connection


def read_terms(*, organization: UUID, knowledge_bases: Sequence[UUID], chunks: Collection[int]) -> dict[int, set[int]]:
    """By chunk id; chunks without a row are left out."""
    if not chunks:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chunk, terms FROM lexical WHERE organization = %s AND kb = ANY(%s) AND chunk = ANY(%s)",
            [organization, list(knowledge_bases), list(chunks)],
        )
        return {chunk: set(terms) for chunk, terms in cursor.fetchall()}
