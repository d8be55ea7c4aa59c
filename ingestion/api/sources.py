"""Sources as they stand, and what is done to one: its documents, and its purge."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.openapi import PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from ingestion.api.documents import FILTERS, DocumentSummary, document_page
from ingestion.api.parameters import flag_of
from ingestion.models import ScheduleFire
from ingestion.services import runs, sources
from kb import access
from kb.access import Level
from kb.models import Document, Source


class Fire(BaseModel):
    """A time of the schedule. A run that started and failed later has a second entry, for the same `due_at`."""

    due_at: datetime = Field(description="The minute that the schedule names.")
    fired_at: datetime
    outcome: ScheduleFire.Outcome
    run_id: UUID | None = Field(description="The run that it started, or that was in its way.")
    error: str | None


class SourceAnswer(BaseModel):
    """A source as it stands. What it is, is read and changed in its knowledge base."""

    id: UUID
    knowledge_base_id: UUID
    name: str
    type: Source.Kind
    enabled: bool
    documents: int = Field(description="Those that you may see.")
    cron: str | None = Field(description="Null while it has no schedule: none is set, or it is disabled.")
    next_run_at: datetime | None = Field(description="In the past while a missed time waits to be made good.")
    last_fire: Fire | None
    created_at: datetime


class SourcePurged(BaseModel):
    status: Literal["purged"] = "purged"
    source_id: UUID
    documents: int = Field(description="How many will be taken in anew by the next run.")


def _fire(fire: ScheduleFire) -> Fire:
    return Fire(due_at=fire.due_at, fired_at=fire.created_at, outcome=fire.outcome, run_id=fire.run_id, error=fire.error or None)


def _source(state: sources.SourceState) -> SourceAnswer:
    source, schedule = state.source, state.schedule
    return SourceAnswer(
        id=source.id,
        knowledge_base_id=source.knowledge_base_id,
        name=source.name,
        type=source.kind,
        enabled=source.enabled,
        documents=state.documents,
        cron=schedule.cron if schedule else None,
        next_run_at=schedule.due_at if schedule else None,
        last_fire=_fire(state.last_fire) if state.last_fire else None,
        created_at=source.created_at,
    )


class SourcesView(APIView):
    @extend_schema(operation_id="list_sources", responses={200: Paged[SourceAnswer]}, parameters=PAGE_PARAMETERS, tags=["sources"])
    def get(self, request: Request, kb_id: str) -> Response:
        """Newest first, with those that are made by pushing texts."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id)
        rows = access.rows(request.user, Source).filter(knowledge_base=knowledge_base, state=Source.State.ACTIVE)
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request))
        items = [
            _source(state).model_dump(mode="json") for state in sources.states_of(page.items, seen=access.rows(request.user, Document))
        ]
        return Response({"items": items, "next_cursor": page.next_cursor})


class SourceView(APIView):
    @extend_schema(operation_id="read_source", responses={200: SourceAnswer}, tags=["sources"])
    def get(self, request: Request, kb_id: str, source_id: str) -> Response:
        """What it holds, when it runs next by its schedule, and what came of the last time."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id)
        source = access.get_source(request.user, knowledge_base, source_id)
        (state,) = sources.states_of([source], seen=access.rows(request.user, Document))
        return Response(_source(state).model_dump(mode="json"))


class SourceFiresView(APIView):
    @extend_schema(operation_id="list_source_fires", responses={200: Paged[Fire]}, parameters=PAGE_PARAMETERS, tags=["sources"])
    def get(self, request: Request, kb_id: str, source_id: str) -> Response:
        """The log of its schedule, newest first; entries are kept for 90 days."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id)
        source = access.get_source(request.user, knowledge_base, source_id)
        page = take_page(sources.fires_of(source), cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": [_fire(fire).model_dump(mode="json") for fire in page.items], "next_cursor": page.next_cursor})


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
        """Forget what was ingested, so that the next run does everything again; chunks answer until then. 409 while a run holds it.
        Private documents of others are left as they are."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        source = access.get_source(request.user, knowledge_base, source_id)
        asked = {"actor": request.user, "user": request.user.user, "by": request.user.name}
        forgotten = runs.purge_source(source, reembed=flag_of(request, "reembed"), **asked)
        return Response(SourcePurged(source_id=source.id, documents=forgotten).model_dump(mode="json"))
