"""Why is this page not in my knowledge base?"""

from datetime import datetime
from typing import Self
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.errors import InvalidInput
from config.openapi import query
from ingestion.api.verdicts import Verdict, verdict_rows
from ingestion.services.explanations import Explanation, explain_address
from kb import access

MAX_URL = 8192


class Refusal(BaseModel):
    reason: str
    text: str

    @classmethod
    def of(cls, refused: tuple[str, str] | None) -> Self | None:
        return cls(reason=refused[0], text=refused[1]) if refused else None


class Robots(BaseModel):
    """As a run last read it; it may say something else by now."""

    outcome: str
    read_at: datetime
    refusal: Refusal | None


class StandingDocument(BaseModel):
    id: UUID
    chunks: int
    missed_runs: int = Field(description="Complete runs in a row that did not find it.")
    removed_at: datetime | None


class RunVerdict(BaseModel):
    run_id: UUID
    created_at: datetime
    status: str
    verdict: Verdict | None = Field(description="Null: the run did not come to it, or its verdicts are not kept any more.")


class Why(BaseModel):
    """What the source's rules say of an address now, and what its last runs did with it."""

    answer: str = Field(description="The nearest cause, in a sentence.")
    url: str
    key: str = Field(description="What the address is known by; other spellings have the same.")
    refusal: Refusal | None = Field(description="Why the rules of the source, as they are now, leave it out.")
    robots: Robots | None = Field(description="Null while no run has met its host.")
    document: StandingDocument | None
    runs: list[RunVerdict] = Field(description="The last five, newest first.")

    @classmethod
    def of(cls, found: Explanation) -> Self:
        rows = verdict_rows([item for _, item in found.verdicts if item is not None])
        named = {row.id: row for row in rows}
        host, document = found.host, found.document
        return cls(
            answer=found.answer,
            url=found.url,
            key=found.key,
            refusal=Refusal.of(found.refused),
            robots=Robots(outcome=host.outcome, read_at=host.read_at, refusal=Refusal.of(found.robots)) if host else None,
            document=document
            and StandingDocument(
                id=document.id, chunks=document.chunk_count, missed_runs=document.missed_runs, removed_at=document.tombstoned_at
            ),
            runs=[
                RunVerdict(run_id=run.id, created_at=run.created_at, status=run.status, verdict=named[item.id] if item else None)
                for run, item in found.verdicts
            ],
        )


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, errors=[{"path": "url", "message": message}])


class WhyView(APIView):
    @extend_schema(
        operation_id="explain_address",
        responses={200: Why},
        parameters=[query("url", "The address; one without scheme and host belongs to the start's.", required=True)],
        tags=["sources"],
    )
    def get(self, request: Request, kb_id: str, source_id: str) -> Response:
        """Nothing is asked of the site. 409 for a source that crawls none."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id)
        source = access.get_source(request.user, knowledge_base, source_id)
        url = request.query_params.get("url", "")
        if not url.strip():
            raise _refused("`url` is missing. Add the address that is to be explained: ?url=https://…")
        if "\0" in url or len(url) > MAX_URL:
            raise _refused(f"`url` must be an address of at most {MAX_URL} characters without NUL.")
        return Response(Why.of(explain_address(source, url)).model_dump(mode="json"))
