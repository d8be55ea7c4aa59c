"""What a crawl met of the site beyond its pages: hosts with their robots.txt, sitemaps, and a site that answers everything alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingestion.models import CrawledHost, IngestionRun
from ingestion.plan import plan_for
from ingestion.sources.base import Look
from ingestion.sources.web.hosts import robots_of_row
from ingestion.sources.web.preview import SiteLook
from ingestion.sources.web.state import SiteState
from ingestion.sources.web.visit import agent_of
from kb.models import Source

MAX_HOSTS = 200


@dataclass(frozen=True, slots=True)
class Host:
    """`robots` is read, none (no rules), unavailable (nothing was asked) or ignored; `status` that of its robots.txt."""

    origin: str
    robots: str
    status: int | None
    crawl_delay: float | None
    error: str


@dataclass(frozen=True, slots=True)
class Crawl:
    """`sitemaps` have url, outcome (read, none, unreadable or left_out), pages and problem."""

    hosts: Sequence[Host]
    sitemaps: Sequence[Mapping[str, Any]]
    same_for_all: bool
    warnings: Sequence[str] = ()


def crawl_of_run(run: IngestionRun) -> Crawl | None:
    """None for runs of sources that have no site."""
    if run.source.kind != Source.Kind.WEB or run.kind != IngestionRun.Kind.INGEST:
        return None
    state = SiteState(**(run.crawl_state or {}))
    web = plan_for(run).web
    agent = agent_of(web) if web is not None else ""
    rows = CrawledHost.objects.filter(run=run).order_by("id")[:MAX_HOSTS]
    return Crawl([_host(row, agent) for row in rows], state.sitemaps, state.same_for_all, state.warnings)


def crawl_of_look(look: Look) -> Crawl | None:
    """The same of a preview."""
    if not isinstance(look, SiteLook):
        return None
    return Crawl(
        [_host(row, agent_of(look.web)) for row in look.hosts.rows[:MAX_HOSTS]],
        look.state.sitemaps,
        look.state.same_for_all,
        look.state.warnings,
    )


def _host(row: CrawledHost, agent: str) -> Host:
    return Host(row.origin, row.outcome, row.status, robots_of_row(row, agent=agent).crawl_delay, row.error)
