"""Runs: start, watch, stop, and answer for what one would remove."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.openapi import PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from ingestion import claims
from ingestion.api.documents import DocumentSummary, summary
from ingestion.api.parameters import flag_of
from ingestion.models import IngestionRun
from ingestion.services import crawls, removals, runs
from ingestion.services.documents import with_state
from ingestion.services.progress import Progress, progress_of, speed_of
from ingestion.services.verdicts import error_of
from kb import access
from kb.access import Actor, Level


class RunStarted(BaseModel):
    run_id: UUID
    knowledge_base_id: UUID
    source_id: UUID
    status: str
    created_at: datetime


class PlanAnswer(BaseModel):
    """What somebody said to a braked deletion."""

    decision: Literal["confirmed", "rejected"]
    by: str = Field(description="A person or an API key.")
    at: datetime
    planned: int
    removed: int | None = Field(default=None, description="Null while the deletion is under way, and where it was rejected.")
    kept: int | None = Field(default=None, description="Planned documents that stay: they were seen again, or the site still gives them.")
    run_id: UUID | None = Field(default=None, description="The run that removes, with a verdict on each planned document.")


class Run(BaseModel):
    """A run, with its counters as they are now while it is open."""

    id: UUID
    knowledge_base_id: UUID
    source_id: UUID
    source_name: str
    kind: str
    trigger: str
    status: str = Field(description="queued, running, succeeded, partial, failed, cancelled or needs_confirmation.")
    stop_reason: str | None
    version: int | None = Field(description="Of the knowledge base, under which it runs.")
    started_by: str | None = Field(description="A person or an API key; null for what starts by itself.")
    created_at: datetime
    started_at: datetime | None
    listed_at: datetime | None = Field(description="When it knew all that there is.")
    progressed_at: datetime
    finished_at: datetime | None
    counters: dict[str, Any]
    position: int | None = Field(description="In line, while it has not begun.")
    waiting_for: str | None = Field(description="Such as `no worker on queue embed` or `provider pause`.")
    error: str | None
    warnings: list[str]
    planned_removals: int = Field(description="Documents that a confirmation would remove; GET /runs/{id}/planned-removals lists them.")
    answer: PlanAnswer | None = Field(description="Of a run that needed a confirmation, once it has one.")


class HostAnswer(BaseModel):
    origin: str
    robots: str = Field(description="read, none (no rules), unavailable (nothing was asked of it) or ignored.")
    status: int | None = Field(description="Of its robots.txt; null if there was no answer.")
    crawl_delay: float | None = Field(description="Seconds that its robots.txt asks for.")
    error: str | None


class SitemapAnswer(BaseModel):
    url: str
    outcome: str = Field(description="read, none (404), unreadable or left_out (too many).")
    pages: int
    problem: str | None = Field(description="With one, a run concludes nothing about what it did not find.")


class CrawlAnswer(BaseModel):
    """What was met of a site beyond its pages."""

    hosts: list[HostAnswer]
    sitemaps: list[SitemapAnswer]
    same_for_all: bool = Field(description="The site answers made-up addresses with its start page, as for maintenance.")

    @classmethod
    def of(cls, crawl: crawls.Crawl | None) -> Self | None:
        if crawl is None:
            return None
        return cls(
            hosts=[
                HostAnswer(origin=h.origin, robots=h.outcome, status=h.status, crawl_delay=h.crawl_delay, error=h.error or None)
                for h in crawl.hosts
            ],
            sitemaps=[SitemapAnswer(**{**sitemap, "problem": sitemap["problem"] or None}) for sitemap in crawl.sitemaps],
            same_for_all=crawl.same_for_all,
        )


class Speed(BaseModel):
    """How an open run gets on."""

    per_second: float = Field(description="Documents, or pages, that got their verdict in the last half minute.")
    eta_seconds: int | None = Field(
        description="For what is known now, at this rate; a crawl may find more. Null when nothing moves, and in the first seconds."
    )
    depth: int | None = Field(description="Of a crawl: how many links from the start it is.")
    queue: int = Field(description="Addresses that wait to be asked for.")


class RunDetail(Run):
    """One run, with what is looked up for one at a time."""

    progress: Speed | None = Field(description="While it is open.")
    crawl: CrawlAnswer | None = Field(description="Of a run over a site.")


class RunAnswered(BaseModel):
    """`documents`: how many were removed (confirm, so far) or stay (reject)."""

    run_id: UUID
    status: str
    documents: int
    kept: int = Field(default=0, description="Planned documents that a confirmation left, because they are there.")
    deletion_run_id: UUID | None = Field(default=None, description="Of a confirmation: the run that asks again and removes.")
    complete: bool = Field(default=True, description="False while that run goes on.")


def run_document(run: IngestionRun, *, actor: Actor, progress: Progress | None = None) -> Run:
    """The run as the actor may see it: of a channel, where documents may be private, without those of others."""
    progress = progress or progress_of(run, actor=actor)
    return Run(
        id=run.id,
        knowledge_base_id=run.knowledge_base_id,
        source_id=run.source_id,
        source_name=run.source.name,
        kind=run.kind,
        trigger=run.trigger,
        status=run.status,
        stop_reason=run.stop_reason or None,
        version=run.version.number if run.version else None,
        started_by=run.started_by or None,
        created_at=run.created_at,
        started_at=run.started_at,
        listed_at=run.listed_at,
        progressed_at=claims.last_progress(run) if run.is_open else run.progressed_at,
        finished_at=run.finished_at,
        counters=dict(progress.counters),
        position=progress.position,
        waiting_for=progress.waiting_for or None,
        error=error_of(run, actor=actor) or None,
        warnings=run.warnings,
        planned_removals=removals.count_planned(run, actor=actor),
        answer=PlanAnswer(**run.answer) if run.answer else None,
    )


def run_detail(run: IngestionRun, *, actor: Actor) -> RunDetail:
    progress = progress_of(run, actor=actor)
    speed = speed_of(run, progress, actor=actor)
    return RunDetail(
        **dict(run_document(run, actor=actor, progress=progress)),
        progress=Speed(**asdict(speed)) if speed else None,
        crawl=CrawlAnswer.of(crawls.crawl_of_run(run)),
    )


def get_run(request: Request, run_id: str, level: Level = Level.VIEW) -> IngestionRun:
    return runs.get_run(request.user, run_id, level)


class RunSourceView(APIView):
    @extend_schema(operation_id="run_source", request=None, responses={202: RunStarted}, tags=["runs"])
    def post(self, request: Request, kb_id: str, source_id: str) -> Response:
        """409 names the run that holds the source; 409 also for a disabled source."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        source = access.get_source(request.user, knowledge_base, source_id)
        trigger = IngestionRun.Trigger.API if request.user.api_key else IngestionRun.Trigger.MANUAL
        run = runs.start_run(source, trigger=trigger, user=request.user.user, by=request.user.name)
        started = RunStarted(
            run_id=run.id, knowledge_base_id=knowledge_base.id, source_id=source.id, status=run.status, created_at=run.created_at
        )
        return Response(started.model_dump(mode="json"), status=202)


class Reextracted(RunStarted):
    documents: int = Field(description="How many are read again although nothing of them changed.")


class ReextractView(APIView):
    @extend_schema(
        operation_id="reextract_source",
        request=None,
        responses={202: Reextracted},
        parameters=[query("outdated", "Only documents that an older extractor read.", bool, default=False)],
        tags=["sources"],
    )
    def post(self, request: Request, kb_id: str, source_id: str) -> Response:
        """Read every document again, by a run that starts now: files are read better after an update. What stands answers until then, and
        passages that stay the same cost nothing."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        source = access.get_source(request.user, knowledge_base, source_id)
        trigger = IngestionRun.Trigger.API if request.user.api_key else IngestionRun.Trigger.MANUAL
        asked = {"actor": request.user, "user": request.user.user, "by": request.user.name, "trigger": trigger}
        again = runs.reextract_source(source, outdated_only=flag_of(request, "outdated"), **asked)
        run = again.run
        answer = Reextracted(
            run_id=run.id,
            knowledge_base_id=knowledge_base.id,
            source_id=source.id,
            status=run.status,
            created_at=run.created_at,
            documents=again.documents,
        )
        return Response(answer.model_dump(mode="json"), status=202)


class SourceRunsView(APIView):
    @extend_schema(operation_id="list_source_runs", responses={200: Paged[Run]}, parameters=PAGE_PARAMETERS, tags=["runs"])
    def get(self, request: Request, kb_id: str, source_id: str) -> Response:
        """Newest first. Purges, confirmed deletions and single texts are no runs of this history."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id)
        source = access.get_source(request.user, knowledge_base, source_id)
        claims.reap_dead(source)
        rows = access.rows(request.user, IngestionRun).filter(source=source, kind=IngestionRun.Kind.INGEST)
        related = rows.select_related("source", "version", "requested_by", "space__embedding_model")
        page = take_page(related, cursor=request.query_params.get("cursor"), limit=limit_of(request))
        items = [run_document(run, actor=request.user).model_dump(mode="json") for run in page.items]
        return Response({"items": items, "next_cursor": page.next_cursor})


class RunView(APIView):
    @extend_schema(operation_id="read_run", responses={200: RunDetail}, tags=["runs"])
    def get(self, request: Request, run_id: str) -> Response:
        return Response(run_detail(get_run(request, run_id), actor=request.user).model_dump(mode="json"))


class CancelRunView(APIView):
    @extend_schema(operation_id="cancel_run", request=None, responses={200: RunDetail}, tags=["runs"])
    def post(self, request: Request, run_id: str) -> Response:
        """Stop an open run; what it has published stays. 409 if it has ended."""
        runs.cancel_run(get_run(request, run_id, Level.EDIT), by=request.user.name)
        return Response(run_detail(get_run(request, run_id), actor=request.user).model_dump(mode="json"))


class PlannedRemovalsView(APIView):
    @extend_schema(operation_id="list_planned_removals", responses={200: Paged[DocumentSummary]}, parameters=PAGE_PARAMETERS, tags=["runs"])
    def get(self, request: Request, run_id: str) -> Response:
        """The documents that a confirmation would look at and remove; none once it was answered."""
        rows = with_state(removals.planned_documents(get_run(request, run_id), actor=request.user))
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": [summary(row).model_dump(mode="json") for row in page.items], "next_cursor": page.next_cursor})


class ConfirmRunView(APIView):
    @extend_schema(
        operation_id="confirm_run",
        request=None,
        responses={200: RunAnswered, 202: RunAnswered},
        parameters=[query("unasked", "Remove without asking the site for each address again.", bool, default=False)],
        tags=["runs"],
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Look at each document that the run planned to remove again, and remove what is not there: what the source showed since, or a
        site still gives, stays. 202 where that takes longer than a slice: workers go on with it."""
        run = get_run(request, run_id, Level.EDIT)
        done = removals.confirm_removals(run, user=request.user.user, by=request.user.name, unasked=flag_of(request, "unasked"))
        answer = RunAnswered(
            run_id=run.id,
            status=get_run(request, run_id).status,
            documents=done.removed,
            kept=done.kept,
            deletion_run_id=done.deletion.id,
            complete=done.is_done,
        )
        return Response(answer.model_dump(mode="json"), status=200 if done.is_done else 202)


class RejectRunView(APIView):
    @extend_schema(operation_id="reject_run", request=None, responses={200: RunAnswered}, tags=["runs"])
    def post(self, request: Request, run_id: str) -> Response:
        """Forget what it planned, and start counting misses anew."""
        stay = removals.reject_removals(get_run(request, run_id, Level.EDIT), actor=request.user, by=request.user.name)
        run = get_run(request, run_id)
        return Response(RunAnswered(run_id=run.id, status=run.status, documents=stay).model_dump(mode="json"))
