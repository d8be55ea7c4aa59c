"""Which chunks of a knowledge base have a vector in a space, and which lack one. Compared by anti-joins: nothing else is believed."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from psycopg import sql

from kb.models.spaces import EmbeddingSpace
from kb.stores.contents import NOTHING, read_contents
from kb.stores.tables import embedding_table, index_name
from kb.stores.vectors import EXACT_ROWS

_LACKING = sql.SQL(
    "FROM kb_chunk c WHERE c.organization_id = %(organization)s AND c.knowledge_base_id = %(kb)s AND NOT EXISTS ("
    "SELECT FROM {table} v WHERE v.space = %(space)s AND v.kb = %(kb)s AND v.chunk = c.id)"
)
_PAGE = sql.SQL(
    "SELECT c.id, c.text, c.context, c.heading_path, d.title FROM kb_chunk c JOIN kb_document d ON d.id = c.document_id"
    " WHERE c.organization_id = %(organization)s AND c.knowledge_base_id = %(kb)s AND c.id > %(after)s AND {condition}"
    " ORDER BY c.id LIMIT %(limit)s"
)
_WITHOUT = sql.SQL("NOT EXISTS (SELECT FROM {table} v WHERE v.space = %(space)s AND v.kb = %(kb)s AND v.chunk = c.id)")


@dataclass(frozen=True, slots=True)
class StoredText:
    """A chunk as it is embedded: its text, the line above it (None: not kept) and what that line is made of."""

    chunk: int
    text: str
    context: str | None
    heading_path: list[str]
    title: str


@dataclass(frozen=True, slots=True)
class Holding:
    """Vectors of one knowledge base in one space."""

    organization: UUID
    knowledge_base: UUID
    space: EmbeddingSpace

    def count(self) -> int:
        statement = sql.SQL("SELECT count(*) FROM {table} WHERE space = %(space)s AND kb = %(kb)s AND organization = %(organization)s")
        return self._value(statement)

    def count_lacking(self) -> int:
        """How many chunks have no vector here."""
        return self._value(sql.SQL("SELECT count(*) ") + _LACKING)

    def is_complete(self) -> bool:
        return not self._value(sql.SQL("SELECT EXISTS (SELECT 1 ") + _LACKING + sql.SQL(")"))

    def is_used(self) -> bool:
        """Whether anything was ever written here and not removed since; cheap."""
        return self._value(sql.SQL("SELECT EXISTS (SELECT FROM embedding_use WHERE kb = %(kb)s AND space = %(space)s)"))

    def lacking(self, *, after: int, limit: int) -> list[StoredText]:
        """The next chunks without a vector here, by id."""
        return self._page(_WITHOUT, after=after, limit=limit)

    def stored(self, *, after: int, until: int, limit: int) -> list[StoredText]:
        """The next chunks up to `until`, whatever they have."""
        return self._page(sql.SQL("c.id <= %(until)s"), after=after, limit=limit, until=until)

    def needs_index(self) -> bool:
        """Whether a search here would have to scan more rows than is quick, because its index is not built yet."""
        contents = read_contents(organization=self.organization, knowledge_bases=[self.knowledge_base])
        if contents.get(self.knowledge_base, NOTHING).chunks <= EXACT_ROWS:
            return False
        # The knowledge base lies in one leaf: that of any of its rows.
        leaf = self._value(
            sql.SQL("SELECT (SELECT v.tableoid::regclass::text FROM {table} v WHERE v.space = %(space)s AND v.kb = %(kb)s LIMIT 1)")
        )
        if leaf is None:
            return False
        is_built = sql.SQL("SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%(index)s) AND indisvalid)")
        return not self._value(is_built, index=index_name(leaf, self.space.embedding_model.vector_index))

    def copy_from(self, other: EmbeddingSpace, chunks: Sequence[int]) -> int:
        """Take over the vectors of a space whose vectors are the same: another registration of one model. In a transaction."""
        with connection.cursor() as cursor:
            cursor.execute(
                sql.SQL(
                    "WITH noted AS (INSERT INTO embedding_use (organization, kb, space) VALUES (%(organization)s, %(kb)s, %(space)s)"
                    " ON CONFLICT DO NOTHING)"
                    " INSERT INTO {table} (organization, space, kb, chunk, vector) SELECT organization, %(space)s, kb, chunk, vector"
                    " FROM {table} WHERE space = %(other)s AND kb = %(kb)s AND chunk = ANY(%(chunks)s) AND organization = %(organization)s"
                    " ON CONFLICT DO NOTHING"
                ).format(table=embedding_table(self.space.dimension)),
                {**self._named(), "other": other.pk, "chunks": list(chunks)},
            )
            return cursor.rowcount

    def _page(self, condition: sql.SQL, **values: int) -> list[StoredText]:
        statement = _PAGE.format(condition=condition.format(table=embedding_table(self.space.dimension)))
        with connection.cursor() as cursor:
            cursor.execute(statement, {**self._named(), **values})
            return [StoredText(*row) for row in cursor.fetchall()]

    def _value(self, statement: sql.Composable, **values: object):
        if isinstance(statement, sql.SQL):
            statement = sql.Composed([statement])
        formatted = sql.SQL("").join(
            part.format(table=embedding_table(self.space.dimension)) if isinstance(part, sql.SQL) else part for part in statement
        )
        with connection.cursor() as cursor:
            cursor.execute(formatted, {**self._named(), **values})
            return cursor.fetchone()[0]

    def _named(self) -> dict[str, object]:
        return {"organization": self.organization, "kb": self.knowledge_base, "space": self.space.pk}
