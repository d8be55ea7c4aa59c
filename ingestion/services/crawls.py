"""What a crawl met of the site beyond its pages: hosts with their robots.txt, sitemaps, and a site that answers everything alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingestion.models import CrawledHost, IngestionRun
from ingestion.sources.base import Look
from ingestion.sources.web.preview import SiteLook
from ingestion.sources.web.state import SiteState
from kb.models import Source

MAX_HOSTS = 200


@dataclass(frozen=True, slots=True)
class Crawl:
    """`sitemaps` have url, outcome (read, none, unreadable or left_out), pages and problem."""

    hosts: Sequence[CrawledHost]
    sitemaps: Sequence[Mapping[str, Any]]
    same_for_all: bool
    warnings: Sequence[str] = ()


def crawl_of_run(run: IngestionRun) -> Crawl | None:
    """None for runs of sources that have no site."""
    if run.source.kind != Source.Kind.WEB or run.kind != IngestionRun.Kind.INGEST:
        return None
    state = SiteState(**(run.crawl_state or {}))
    hosts = CrawledHost.objects.filter(run=run).defer("robots").order_by("id")[:MAX_HOSTS]
    return Crawl(list(hosts), state.sitemaps, state.same_for_all, state.warnings)


def crawl_of_look(look: Look) -> Crawl | None:
    """The same of a preview."""
    if not isinstance(look, SiteLook):
        return None
    return Crawl(look.hosts.rows[:MAX_HOSTS], look.state.sitemaps, look.state.same_for_all, look.state.warnings)
