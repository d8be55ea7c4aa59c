"""Documents of a knowledge base: how they stand, and what of them answers."""

from datetime import datetime
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.openapi import PAGE_PARAMETERS, Paged, query
from config.paging import NEWEST_FIRST, limit_of, take_page
from ingestion.api.parameters import choice_of, text_of
from ingestion.services import pushes
from ingestion.services.documents import STATES, State, find_documents, with_state_of
from kb import access
from kb.access import Level
from kb.models import Chunk, Document, Source

FILTERS = [
    query("state", f"One of {', '.join(STATES)}. Without one, every document that the source still has.", enum=STATES),
    query("q", "Words that stand in the title or the name."),
]


class DocumentSummary(BaseModel):
    """`state`: what answers, against what the source has now. `chunks` answer, whatever the state."""

    id: UUID
    knowledge_base_id: UUID
    source_id: UUID
    source_kind: str
    name: str
    title: str
    url: str | None
    media_type: str
    language: str
    state: State
    error: str | None = Field(description="Of the last attempt, if that failed.")
    warnings: list[str] = Field(description="About what answers: what was cut, lost or assumed when it was read.")
    chunks: int
    characters: int
    size: int
    generation: int = Field(description="Counts publications.")
    missed_runs: int = Field(description="Complete runs in a row that did not find it.")
    removed_at: datetime | None = Field(description="When it left, of one that is gone.")
    created_at: datetime
    first_ingested_at: datetime | None
    last_ingested_at: datetime | None
    last_run_id: UUID | None


class ChunkRow(BaseModel):
    """`text` is the document's Markdown from `start` to `end`."""

    id: int
    ordinal: int
    start: int
    end: int
    text: str
    heading_path: list[str]
    page_start: int | None
    page_end: int | None
    tokens: int
    language: str


class ChunkPage(BaseModel):
    items: list[ChunkRow]
    next_cursor: str | None


class DocumentDetail(DocumentSummary):
    metadata: dict[str, Any]
    chunk_page: ChunkPage


class DocumentDeleted(BaseModel):
    id: UUID
    status: str = "deleted"
    chunks_removed: int


def summary(document: Document) -> DocumentSummary:
    return DocumentSummary(
        id=document.id,
        knowledge_base_id=document.knowledge_base_id,
        source_id=document.source_id,
        source_kind=document.source.kind,
        name=document.key.partition("\n")[0],  # behind the line break stands what keeps texts of one name apart
        title=document.title,
        url=document.url or None,
        media_type=document.media_type,
        language=document.language,
        state=document.state,
        error=document.last_error or None,
        warnings=document.warnings,
        chunks=document.chunk_count,
        characters=document.characters,
        size=document.size,
        generation=document.generation,
        missed_runs=document.missed_runs,
        removed_at=document.tombstoned_at,
        created_at=document.created_at,
        first_ingested_at=document.first_ingested_at,
        last_ingested_at=document.last_ingested_at,
        last_run_id=document.last_run_id,
    )


def document_page(request: Request, knowledge_base_id: UUID, source_id: UUID | None) -> Response:
    """One page of the documents, newest first."""
    rows = access.rows(request.user, Document).filter(knowledge_base_id=knowledge_base_id)
    found = find_documents(rows, source_id=source_id, state=choice_of(request, "state", STATES), query=text_of(request, "q"))
    page = take_page(found, cursor=request.query_params.get("cursor"), limit=limit_of(request), ordering=NEWEST_FIRST)
    return Response({"items": [summary(row).model_dump(mode="json") for row in page.items], "next_cursor": page.next_cursor})


class DocumentsView(APIView):
    @extend_schema(
        operation_id="list_documents",
        responses={200: Paged[DocumentSummary]},
        parameters=[query("source_id", "Only documents of this source."), *FILTERS, *PAGE_PARAMETERS],
        tags=["documents"],
    )
    def get(self, request: Request, kb_id: str) -> Response:
        knowledge_base = access.get_knowledge_base(request.user, kb_id)
        source = request.query_params.get("source_id")
        source_id = access.get_source(request.user, knowledge_base, source).id if source else None
        return document_page(request, knowledge_base.id, source_id)


class DocumentView(APIView):
    """Reached under its knowledge base and by its id alone."""

    @extend_schema(responses={200: DocumentDetail}, parameters=PAGE_PARAMETERS, tags=["documents"])
    def get(self, request: Request, document_id: str, kb_id: str | None = None) -> Response:
        """The document with one page of its chunks, in their order."""
        document = with_state_of(self._document(request, document_id, kb_id, Level.VIEW))
        chunks = take_page(
            access.rows(request.user, Chunk).filter(document=document),
            cursor=request.query_params.get("cursor"),
            limit=limit_of(request),
            ordering=("ordinal", "id"),
        )
        rows = [ChunkRow.model_validate(chunk, from_attributes=True) for chunk in chunks.items]
        detail = DocumentDetail(
            **summary(document).model_dump(),
            metadata=document.metadata,
            chunk_page=ChunkPage(items=rows, next_cursor=chunks.next_cursor),
        )
        return Response(detail.model_dump(mode="json"))

    @extend_schema(responses={200: DocumentDeleted}, tags=["documents"])
    def delete(self, request: Request, document_id: str, kb_id: str | None = None) -> Response:
        """It stops answering at once, also in the middle of a run. 409 for a crawled page, which would come back."""
        document = self._document(request, document_id, kb_id, Level.EDIT)
        removed = pushes.delete_document(document)
        return Response(DocumentDeleted(id=document.id, chunks_removed=removed).model_dump(mode="json"))

    def _document(self, request: Request, document_id: str, kb_id: str | None, level: Level) -> Document:
        within: dict[str, Any] = {"source__state": Source.State.ACTIVE}
        if kb_id is not None:
            within["knowledge_base"] = access.get_knowledge_base(request.user, kb_id, level)
        return access.get_row(request.user, Document, document_id, level, **within)
