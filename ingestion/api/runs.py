"""Runs: start, watch, stop, and answer for what one would remove."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.openapi import PAGE_PARAMETERS, Paged
from config.paging import limit_of, take_page
from ingestion import claims
from ingestion.models import IngestionRun
from ingestion.services import crawls, runs
from ingestion.services.progress import Progress, progress_of, speed_of
from kb import access
from kb.access import Level


class RunStarted(BaseModel):
    run_id: UUID
    knowledge_base_id: UUID
    source_id: UUID
    status: str
    created_at: datetime


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
    started_by: str | None
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
    planned_removals: int = Field(description="Documents that a confirmation would remove.")


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
    eta_seconds: int | None = Field(description="For what is known now, at this rate; a crawl may find more. Null when nothing moves.")
    depth: int | None = Field(description="Of a crawl: how many links from the start it is.")
    queue: int = Field(description="Addresses that wait to be asked for.")


class RunDetail(Run):
    """One run, with what is looked up for one at a time."""

    progress: Speed | None = Field(description="While it is open.")
    crawl: CrawlAnswer | None = Field(description="Of a run over a site.")


class RunAnswered(BaseModel):
    """`documents`: how many were removed (confirm) or stay (reject)."""

    run_id: UUID
    status: str
    documents: int


def run_document(run: IngestionRun, progress: Progress | None = None) -> Run:
    progress = progress or progress_of(run)
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
        started_by=run.requested_by.get_username() if run.requested_by else None,
        created_at=run.created_at,
        started_at=run.started_at,
        listed_at=run.listed_at,
        progressed_at=claims.last_progress(run) if run.is_open else run.progressed_at,
        finished_at=run.finished_at,
        counters=dict(progress.counters),
        position=progress.position,
        waiting_for=progress.waiting_for or None,
        error=run.error or None,
        warnings=run.warnings,
        planned_removals=runs.count_planned(run),
    )


def run_detail(run: IngestionRun) -> RunDetail:
    progress = progress_of(run)
    speed = speed_of(run, progress)
    return RunDetail(
        **dict(run_document(run, progress)),
        progress=Speed(**asdict(speed)) if speed else None,
        crawl=CrawlAnswer.of(crawls.crawl_of_run(run)),
    )


def get_run(request: Request, run_id: str, level: Level = Level.VIEW) -> IngestionRun:
    return access.get_row(request.user, IngestionRun, run_id, level)


class RunSourceView(APIView):
    @extend_schema(operation_id="run_source", request=None, responses={202: RunStarted}, tags=["runs"])
    def post(self, request: Request, kb_id: str, source_id: str) -> Response:
        """409 names the run that holds the source; 409 also for a disabled source."""
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        source = access.get_source(request.user, knowledge_base, source_id)
        trigger = IngestionRun.Trigger.API if request.user.api_key else IngestionRun.Trigger.MANUAL
        run = runs.start_run(source, trigger=trigger, user=request.user.user)
        started = RunStarted(
            run_id=run.id, knowledge_base_id=knowledge_base.id, source_id=source.id, status=run.status, created_at=run.created_at
        )
        return Response(started.model_dump(mode="json"), status=202)


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
        items = [run_document(run).model_dump(mode="json") for run in page.items]
        return Response({"items": items, "next_cursor": page.next_cursor})


class RunView(APIView):
    @extend_schema(operation_id="read_run", responses={200: RunDetail}, tags=["runs"])
    def get(self, request: Request, run_id: str) -> Response:
        return Response(run_detail(get_run(request, run_id)).model_dump(mode="json"))


class CancelRunView(APIView):
    @extend_schema(operation_id="cancel_run", request=None, responses={200: RunDetail}, tags=["runs"])
    def post(self, request: Request, run_id: str) -> Response:
        """Stop an open run; what it has published stays. 409 if it has ended."""
        runs.cancel_run(get_run(request, run_id, Level.EDIT))
        return Response(run_detail(get_run(request, run_id)).model_dump(mode="json"))


class ConfirmRunView(APIView):
    @extend_schema(operation_id="confirm_run", request=None, responses={200: RunAnswered}, tags=["runs"])
    def post(self, request: Request, run_id: str) -> Response:
        """Remove what a run that needs confirmation planned; what the source showed again since stays."""
        run = get_run(request, run_id, Level.EDIT)
        removed = runs.confirm_removals(run, user=request.user.user)
        return _answered(request, run_id, removed)


class RejectRunView(APIView):
    @extend_schema(operation_id="reject_run", request=None, responses={200: RunAnswered}, tags=["runs"])
    def post(self, request: Request, run_id: str) -> Response:
        """Forget what it planned, and start counting misses anew."""
        return _answered(request, run_id, runs.reject_removals(get_run(request, run_id, Level.EDIT)))


def _answered(request: Request, run_id: str, documents: int) -> Response:
    run = get_run(request, run_id)
    return Response(RunAnswered(run_id=run.id, status=run.status, documents=documents).model_dump(mode="json"))
