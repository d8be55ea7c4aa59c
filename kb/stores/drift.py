"""Whether vectors and words agree with the chunks: the triggers keep them true, this looks whether they did."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection, transaction
from psycopg import sql

from kb.models.knowledge_bases import KnowledgeBase
from kb.stores import spellings
from kb.stores.tables import embedding_table


@dataclass(frozen=True, slots=True)
class Drift:
    """Counts. Missing: a chunk that search cannot find. Orphan: a vector or word row whose chunk is gone."""

    missing_vectors: int
    missing_words: int
    orphan_vectors: int
    orphan_words: int

    @property
    def is_clean(self) -> bool:
        return not (self.missing_vectors or self.missing_words or self.orphan_vectors or self.orphan_words)


_CHUNKS_WITHOUT = sql.SQL(
    "SELECT count(*) FROM kb_chunk c WHERE c.organization_id = %(organization)s AND c.knowledge_base_id = %(kb)s AND NOT EXISTS ("
    "SELECT FROM {table} h WHERE h.kb = %(kb)s AND h.chunk = c.id AND {more})"
)
_WITHOUT_CHUNK = sql.SQL(
    "FROM {table} h WHERE h.kb = %(kb)s AND {more} AND NOT EXISTS ("
    "SELECT FROM kb_chunk c WHERE c.id = h.chunk AND c.knowledge_base_id = %(kb)s AND c.organization_id = h.organization)"
)
_ANY = sql.SQL("true")


def drift(knowledge_base: KnowledgeBase, *, vectors_are_here: bool = True) -> Drift:
    """Compare by anti-joins; takes seconds for a large knowledge base and no locks. Vectors are missing only in its current space, and not
    where they lie in an external store."""
    space = knowledge_base.space
    missing_vectors = 0
    if space is not None and vectors_are_here:
        missing_vectors = _count(_CHUNKS_WITHOUT.format(table=embedding_table(space.dimension), more=_in_space(space.pk)), knowledge_base)
    words = sql.Identifier("lexical")
    return Drift(
        missing_vectors=missing_vectors,
        missing_words=_count(_CHUNKS_WITHOUT.format(table=words, more=_ANY), knowledge_base),
        orphan_vectors=sum(
            _count(sql.SQL("SELECT count(*) ") + _WITHOUT_CHUNK.format(table=table, more=more), knowledge_base)
            for table, more in _vector_tables(knowledge_base)
        ),
        orphan_words=_count(sql.SQL("SELECT count(*) ") + _WITHOUT_CHUNK.format(table=words, more=_ANY), knowledge_base)
        + spellings.count_orphans(knowledge_base.pk),
    )


def remove_orphans(knowledge_base: KnowledgeBase) -> int:
    """Delete vectors and words whose chunks are gone; how many rows."""
    tables = [*_vector_tables(knowledge_base), (sql.Identifier("lexical"), _ANY)]
    removed = 0
    with transaction.atomic(), connection.cursor() as cursor:
        for table, more in tables:
            cursor.execute(sql.SQL("DELETE ") + _WITHOUT_CHUNK.format(table=table, more=more), _named(knowledge_base))
            removed += cursor.rowcount
        removed += spellings.remove_orphans(knowledge_base.pk)
    return removed


def _vector_tables(knowledge_base: KnowledgeBase) -> Iterator[tuple[sql.Identifier, sql.Composable]]:
    """The parts of the vector tables that hold something of a knowledge base, its current space and those it left."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT s.id, s.dimension FROM kb_embeddingspace s JOIN embedding_use u ON u.space = s.id WHERE u.kb = %s", [knowledge_base.pk]
        )
        spaces = cursor.fetchall()
    for space, dimension in spaces:
        yield embedding_table(dimension), _in_space(space)


def _in_space(space: int) -> sql.Composed:
    return sql.SQL("h.space = {}").format(sql.Literal(space))


def _named(knowledge_base: KnowledgeBase) -> dict[str, object]:
    return {"organization": knowledge_base.organization_id, "kb": knowledge_base.pk}


def _count(statement: sql.Composed, knowledge_base: KnowledgeBase) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, _named(knowledge_base))
        return cursor.fetchone()[0]
