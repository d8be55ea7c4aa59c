"""A look at what a run would do."""

from typing import Self
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.api.runs import CrawlAnswer
from ingestion.services import previews
from kb import access
from kb.access import Level


class PreviewedDocument(BaseModel):
    document_id: UUID | None = Field(description="Null while there is none.")
    name: str = Field(description="Of a page, what its address is known by.")
    title: str
    change: previews.Change
    chunks: int
    embeddings: int = Field(description="Chunks whose vectors are not paid yet; what several documents share counts for the first.")
    tokens: int = Field(description="Of those chunks.")
    reason: str | None
    error: str | None = Field(description="Why it failed; of one that is gone, what a run would do with it.")


class Skipped(BaseModel):
    url: str
    reason: str = Field(description="A code, such as out_of_scope or robots.")
    text: str | None


class SourcePreview(BaseModel):
    """What a run would do now; nothing was written. Unchanged documents are only counted."""

    source_id: UUID
    complete: bool = Field(description="False when a bound ended it; then nothing is called gone.")
    stopped: str | None = Field(description="Which bound ended it.")
    seconds: float
    counts: dict[previews.Change, int]
    chunks: int
    embeddings: int
    tokens: int
    cost: str | None = Field(description="By the price of the model; null without one.")
    warnings: list[str]
    documents: list[PreviewedDocument]
    skipped: dict[str, int] = Field(description="By reason: what is no document, or would not be asked for.")
    skipped_addresses: list[Skipped] = Field(description="The first 200 of them.")
    crawl: CrawlAnswer | None

    @classmethod
    def of(cls, source_id: UUID, found: previews.Preview) -> Self:
        return cls(
            source_id=source_id,
            complete=found.complete,
            stopped=found.stopped or None,
            seconds=found.seconds,
            counts={previews.Change(change): number for change, number in found.counts.items()},
            chunks=found.chunks,
            embeddings=found.embeddings,
            tokens=found.tokens,
            cost=found.cost,
            warnings=list(found.warnings),
            documents=[_row(row) for row in found.documents],
            skipped=found.reasons,
            skipped_addresses=[Skipped(url=item.url or item.key, reason=item.reason, text=item.error or None) for item in found.skipped],
            crawl=CrawlAnswer.of(found.crawl),
        )


def _row(row: previews.Previewed) -> PreviewedDocument:
    return PreviewedDocument(
        document_id=row.document.id if row.document else None,
        name=row.name,
        title=row.title,
        change=row.change,
        chunks=row.chunks,
        embeddings=row.embeddings,
        tokens=row.tokens,
        reason=row.reason or None,
        error=row.text or None,
    )


class PreviewSourceView(APIView):
    @extend_schema(operation_id="preview_source", request=None, responses={200: SourcePreview}, tags=["sources"])
    def post(self, request: Request, kb_id: str, source_id: str) -> Response:
        """Bounded in time (under two minutes), in documents (500) and in pages of a site (50, politely asked for). 429 with Retry-After
        while three others are under way here."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        source = access.get_source(request.user, knowledge_base, source_id)
        return Response(SourcePreview.of(source.id, previews.preview_source(source)).model_dump(mode="json"))
