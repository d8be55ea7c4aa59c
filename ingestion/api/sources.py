"""What is done to one source: a look at what a run would do, its documents, and its purge."""

from typing import Literal
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.openapi import PAGE_PARAMETERS, Paged, query
from ingestion.api.documents import FILTERS, DocumentSummary, document_page
from ingestion.api.parameters import flag_of
from ingestion.services import previews, runs
from kb import access
from kb.access import Level


class PreviewedDocument(BaseModel):
    document_id: UUID
    name: str
    title: str
    change: previews.Change
    chunks: int
    embeddings: int = Field(description="Chunks whose vectors are not paid yet.")
    tokens: int = Field(description="Of those chunks.")
    error: str | None


class SourcePreview(BaseModel):
    """What a run would do now; nothing was written. Unchanged documents are only counted."""

    source_id: UUID
    complete: bool = Field(description="False when time or the number of documents ended it; then nothing is called gone.")
    seconds: float
    counts: dict[previews.Change, int]
    chunks: int
    embeddings: int
    tokens: int
    cost: str | None = Field(description="By the model's price; null without one.")
    warnings: list[str]
    documents: list[PreviewedDocument]


class SourcePurged(BaseModel):
    status: Literal["purged"] = "purged"
    source_id: UUID
    documents: int = Field(description="How many will be taken in anew by the next run.")


class PreviewSourceView(APIView):
    @extend_schema(operation_id="preview_source", request=None, responses={200: SourcePreview}, tags=["sources"])
    def post(self, request: Request, kb_id: str, source_id: str) -> Response:
        """Bounded in time (under two minutes) and documents. 429 with Retry-After while three others are under way here."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        source = access.get_source(request.user, knowledge_base, source_id)
        found = previews.preview_source(source)
        answer = SourcePreview(
            source_id=source.id,
            complete=found.complete,
            seconds=found.seconds,
            counts={previews.Change(change): number for change, number in found.counts.items()},
            chunks=found.chunks,
            embeddings=found.embeddings,
            tokens=found.tokens,
            cost=found.cost,
            warnings=list(found.warnings),
            documents=[_row(row) for row in found.documents],
        )
        return Response(answer.model_dump(mode="json"))


def _row(row: previews.Previewed) -> PreviewedDocument:
    return PreviewedDocument(
        document_id=row.document.id,
        name=row.document.key,
        title=row.document.title,
        change=row.change,
        chunks=row.chunks,
        embeddings=row.embeddings,
        tokens=row.tokens,
        error=row.error or None,
    )


class SourceDocumentsView(APIView):
    @extend_schema(
        operation_id="list_source_documents",
        responses={200: Paged[DocumentSummary]},
        parameters=[*FILTERS, *PAGE_PARAMETERS],
        tags=["sources"],
    )
    def get(self, request: Request, kb_id: str, source_id: str) -> Response:
        knowledge_base = access.get_knowledge_base(request.user, kb_id)
        source = access.get_source(request.user, knowledge_base, source_id)
        return document_page(request, knowledge_base.id, source.id)

    @extend_schema(
        operation_id="purge_source",
        request=None,
        responses={200: SourcePurged},
        parameters=[query("reembed", "Also forget the paid vectors of its texts.", bool, default=False)],
        tags=["sources"],
    )
    def delete(self, request: Request, kb_id: str, source_id: str) -> Response:
        """Forget what was ingested, so that the next run does everything again; chunks answer until then. 409 while a run holds it."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        source = access.get_source(request.user, knowledge_base, source_id)
        forgotten = runs.purge_source(source, reembed=flag_of(request, "reembed"), user=request.user.user)
        return Response(SourcePurged(source_id=source.id, documents=forgotten).model_dump(mode="json"))
