"""Which chunks a search may find: an organization's knowledge bases, or some documents of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet, Sum

from kb.models.documents import Document

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

    def chosen_documents(self) -> QuerySet[Document]:
        chosen = Document.objects.filter(organization=self.organization, knowledge_base__in=self.ids())
        if self.sources is not None:
            chosen = chosen.filter(source__in=list(self.sources))
        if isinstance(self.documents, QuerySet):
            return chosen.filter(pk__in=self.documents.order_by().values("pk"))
        return chosen if self.documents is None else chosen.filter(pk__in=list(self.documents))

    def count(self) -> int:
        """How many chunks are in scope, from the statistics and without touching a vector. Good enough to choose a plan by."""
        if self.is_narrowed:
            return self.chosen_documents().aggregate(chunks=Sum("chunk_count"))["chunks"] or 0
        with connection.cursor() as cursor:
            cursor.execute(_COUNT, [self.organization, self.ids()] * 2)
            return cursor.fetchone()[0]

    def condition(self) -> tuple[str, list[object]]:
        """SQL that a statement over rows with (organization, kb, chunk) adds to its WHERE, with its parameters."""
        text, parameters = "organization = %s AND kb = ANY(%s)", [self.organization, self.ids()]
        if not self.is_narrowed:
            return text, parameters
        try:
            documents, chosen = self.chosen_documents().values("pk").query.sql_with_params()
        except EmptyResultSet:
            return "false", []
        chunks = f"chunk IN (SELECT id FROM kb_chunk WHERE document_id IN ({documents}))"  # noqa: S608 - Django's own SQL, values are parameters
        return f"{text} AND {chunks}", [*parameters, *chosen]
