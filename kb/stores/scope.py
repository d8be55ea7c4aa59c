"""Which chunks a search may find: an organization's knowledge bases, or some documents of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from kb.models.documents import Document

# More documents than this stay a condition: their ids would be a long statement.
MOST_NAMED = 10_000

_COUNT = """
SELECT coalesce(sum(chunks), 0)::bigint FROM (
    SELECT chunks FROM lexical_total WHERE organization = %s AND kb = ANY(%s)
    UNION ALL
    SELECT chunks FROM lexical_delta WHERE organization = %s AND kb = ANY(%s)
) counted
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """`documents` are ids, or a query of documents when a filter on metadata chooses them; None means all."""

    organization: UUID
    knowledge_bases: Sequence[UUID]
    documents: Sequence[UUID] | QuerySet[Document] | None = None
    sources: Sequence[UUID] | None = None

    @property
    def is_narrowed(self) -> bool:
        return self.documents is not None or self.sources is not None

    def ids(self) -> list[UUID]:
        return list(self.knowledge_bases)

    def settle(self, size: int | None = None) -> tuple["Scope", int]:
        """The scope with its documents named by id, and how many chunks are in it: good enough to choose a plan by. `size` is how many the
        knowledge bases hold, where that is known.

        The planner guesses wildly how many documents a condition on metadata leaves; a list it can count.
        """
        if not self.is_narrowed and size is not None:
            return self, size
        with connection.cursor() as cursor:
            if not self.is_narrowed:
                cursor.execute(_COUNT, [self.organization, self.ids()] * 2)
                return self, cursor.fetchone()[0]
            condition, parameters = self._chosen_documents()
            documents = f"FROM kb_document WHERE {condition}"
            if isinstance(self.documents, QuerySet):
                found = list(self._filtered(self.documents).values_list("id", "chunk_count")[: MOST_NAMED + 1])
            else:
                cursor.execute(f"SELECT id, chunk_count {documents} LIMIT %s", [*parameters, MOST_NAMED + 1])
                found = cursor.fetchall()
            if len(found) <= MOST_NAMED:
                return replace(self, documents=[row[0] for row in found], sources=None), sum(row[1] for row in found)
            cursor.execute(f"SELECT coalesce(sum(chunk_count), 0)::bigint {documents}", parameters)
            return self, cursor.fetchone()[0]

    def condition(self) -> tuple[str, list[object]]:
        """SQL over rows with (organization, kb, chunk) for a WHERE, with its parameters: for an index that yields rows in order."""
        return self._within("chunk IN ({})")

    def condition_of_scan(self) -> tuple[str, list[object]]:
        """The same for a scan of all in scope, with BY_ARRAY: an index is walked once for a whole array, a join goes down for each."""
        return self._within("chunk = ANY(ARRAY({}))")

    def _within(self, form: str) -> tuple[str, list[object]]:
        text, parameters = self._tenant()
        if not self.is_narrowed:
            return text, parameters
        chunks, chosen = self._chosen_chunks()
        return f"{text} AND {form.format(chunks)}", [*parameters, *chosen]

    def _tenant(self) -> tuple[str, list[object]]:
        return "organization = %s AND kb = ANY(%s)", [self.organization, self.ids()]

    def _chosen_chunks(self) -> tuple[str, list[object]]:
        """A query of chunk ids, answered by an index alone where documents are named; the tenant is asked of the rows that bear them.

        Named documents are not looked up again: an index of theirs sorts the array anew for every chunk (measured).
        """
        if self.sources is None and not isinstance(self.documents, QuerySet):
            return "SELECT id FROM kb_chunk WHERE document_id = ANY(%s::uuid[])", [list(self.documents)]
        documents, chosen = self._chosen_documents()
        # Values are parameters, the rest is ours or Django's own SQL.
        return f"SELECT id FROM kb_chunk WHERE document_id IN (SELECT id FROM kb_document WHERE {documents})", chosen  # noqa: S608

    def _chosen_documents(self) -> tuple[str, list[object]]:
        """A condition on kb_document. Lists go as one array: as one parameter each, thousands of them cost more than the search."""
        text, parameters = "organization_id = %s AND knowledge_base_id = ANY(%s)", [self.organization, self.ids()]
        if self.sources is not None:
            text, parameters = f"{text} AND source_id = ANY(%s::uuid[])", [*parameters, list(self.sources)]
        if self.documents is None:
            return text, parameters
        if not isinstance(self.documents, QuerySet):
            return f"{text} AND id = ANY(%s::uuid[])", [*parameters, list(self.documents)]
        try:
            query, chosen = self._filtered(self.documents).values("pk").query.sql_with_params()
        except EmptyResultSet:
            return "false", []
        return f"{text} AND id IN ({query})", [*parameters, *chosen]

    def _filtered(self, documents: QuerySet[Document]) -> QuerySet[Document]:
        """A filter's own condition is asked of the knowledge bases' documents and of no others: no index serves its operators under
        row-level security, and asked of the whole table they would cost what all tenants' documents cost."""
        scope = {"organization_id": self.organization, "knowledge_base_id__in": self.ids()}
        if self.sources is not None:
            scope["source_id__in"] = list(self.sources)
        return documents.filter(**scope).order_by()
