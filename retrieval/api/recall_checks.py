"""Recall checks of a knowledge base: whether the index of vectors finds what is there."""

from typing import Any, Literal

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, ConfigDict, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import PAGE_PARAMETERS, Paged
from config.paging import limit_of, take_page
from kb import access
from kb.access import Level
from retrieval import jobs
from retrieval.api.evaluation_schemas import ShownJob, job_values
from retrieval.belonging import row_of, rows_of
from retrieval.models import RecallCheck
from retrieval.recall import running


class WantedRecallCheck(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    queries: int = Field(50, ge=1, le=running.MOST_QUERIES, description="Questions at each share of the documents.")


class Times(BaseModel):
    p50: float
    p95: float


class RecallLevel(BaseModel):
    """One share of the documents."""

    selectivity: float = Field(description="Share of the documents that a filter would leave.")
    documents: int
    queries: int
    recall: float = Field(description="Mean share of the ten nearest that the search found.")
    worst: float = Field(description="The lowest of a question.")
    short: int = Field(description="Questions that got fewer rows than exist.")
    missing: int = Field(description="How many rows they lacked.")
    plans: dict[str, int] = Field(description="Questions by plan: `exact`, `hnsw`, `hnsw, then exact`.")
    milliseconds: Times
    exact_milliseconds: Times


class ShownRecallCheck(ShownJob):
    """A check: its settings name the model, the seed, and how many questions were asked."""

    levels: list[RecallLevel]
    recall: float | None = Field(description="The lowest of the levels; null until it is done.")
    suggested_ef: int | None = Field(description="An ef that reached .95 on the same questions, where one was needed.")
    verdict: Literal["well", "look"] | None
    warnings: list[str]
    notes: list[str]


def show_check(check: RecallCheck) -> dict[str, Any]:
    warnings = running.warnings_of(check)
    verdict = None if check.recall is None else "look" if warnings else "well"
    own = {name: getattr(check, name) for name in ("levels", "recall", "suggested_ef", "notes")}
    return ShownRecallCheck.model_validate({**job_values(check), **own, "verdict": verdict, "warnings": warnings}).model_dump(mode="json")


class RecallChecks(APIView):
    @extend_schema(tags=["evaluation"], parameters=PAGE_PARAMETERS, responses=Paged[ShownRecallCheck])
    def get(self, request: Request, kb_id: str) -> Response:
        """Past checks, newest first."""
        found = access.get_knowledge_base(request.user, kb_id)
        page = take_page(rows_of(found, RecallCheck), cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": [show_check(one) for one in page.items], "next_cursor": page.next_cursor})

    @extend_schema(tags=["evaluation"], request=WantedRecallCheck, responses={202: ShownRecallCheck})
    def post(self, request: Request, kb_id: str) -> Response:
        """Compare vector searches with exact ones at several shares of the documents; a worker does it. 409 while one is under way."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        made = running.start_check(request.user, found, queries=parse_body(request, WantedRecallCheck).queries)
        return Response(show_check(made), status=202)


class OneRecallCheck(APIView):
    @extend_schema(tags=["evaluation"], responses=ShownRecallCheck)
    def get(self, request: Request, kb_id: str, check_id: str) -> Response:
        """One check."""
        found = access.get_knowledge_base(request.user, kb_id)
        return Response(show_check(row_of(found, RecallCheck, check_id)))


class RecallCheckCancel(APIView):
    @extend_schema(tags=["evaluation"], request=None, responses=ShownRecallCheck)
    def post(self, request: Request, kb_id: str, check_id: str) -> Response:
        """End it; what was measured until now stays."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        check = row_of(found, RecallCheck, check_id)
        jobs.cancel(check)
        return Response(show_check(check))
