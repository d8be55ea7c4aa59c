"""What one visit to a site goes by: the rules of its source, and what was learned of the site so far.

A crawl keeps that on its run (`site.Site`), a preview in memory (`preview.SiteLook`); both prepare, understand and judge by the same code.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from config.http import user_agent
from ingestion.crawl.admission import Admission
from ingestion.crawl.answers import Kind
from ingestion.crawl.links import MOST_LINKS
from ingestion.crawl.scope import Scope
from ingestion.crawl.urls import UrlRefused, absolute, identity
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.sources.web import settling
from ingestion.sources.web.frontier import Found
from ingestion.sources.web.hosts import Hosts
from ingestion.sources.web.requests import Asked
from ingestion.sources.web.settling import Probe, Settled
from ingestion.sources.web.state import SiteState
from ingestion.stages.listing import is_current
from kb.schemas.web import Web

HTML = ("text/html", "application/xhtml+xml")
ATTEMPTS_PER_PAGE = 3
LINKS_CUT = (
    f"{{}} has more than the {MOST_LINKS:,} links that are read of a page, so this run removes nothing. List its pages in a sitemap."
)


class Part(Protocol):
    """The time that there is."""

    @property
    def is_over(self) -> bool: ...

    def beat(self) -> None: ...


def scope_of(web: Web) -> Scope:
    return Scope(
        start_url=web.start_url,
        same_site_only=web.same_site_only,
        include_subdomains=web.include_subdomains,
        path_prefix=web.path_prefix,
        exclude_patterns=tuple(web.exclude_patterns),
        include_patterns=tuple(web.include_patterns),
    )


def agent_of(web: Web) -> str:
    return web.user_agent or user_agent()


class Visit(ABC):
    """`add` and `save` are what differs: where addresses that were found, and what is known of the site, are kept."""

    def __init__(self, run: IngestionRun, *, plan: Plan, hosts: Hosts, state: SiteState) -> None:
        self.run, self.plan, self.web = run, plan, plan.web
        self.hosts, self.state = hosts, state
        self.admission = Admission(scope_of(self.web))
        self.start = absolute(self.web.start_url, base=self.web.start_url)

    @cached_property
    def start_key(self) -> str:
        return identity(self.start)

    @abstractmethod
    def add(self, found: Sequence[Found]) -> None:
        """Keep addresses that were found."""

    @abstractmethod
    def save(self, *, every: float = 0.0) -> None:
        """Keep what is known of the site, unless that was done less than `every` seconds ago."""

    def validators(self, item: RunItem) -> dict[str, str]:
        """Conditional requests only where a 304 hides no links, and where what stands is whole and made under these settings."""
        document = item.document
        hides_links = item.depth < self.web.max_depth and (not document or not document.media_type or document.media_type in HTML)
        if document is None or hides_links or document.tombstoned_at or document.content_hash is None:
            return {}
        if not is_current(document, self.run, self.plan):
            return {}
        return {"etag": document.etag, "last_modified": document.last_modified}

    def robots_came(self, host: str, asked: Asked) -> None:
        self.state.count(asked)
        robots = self.hosts.remember(host, asked)
        if robots.outcome == "unavailable":
            why = asked.failure.message if asked.failure else f"The server answers {asked.answer.status}."
            self.state.warn(f"{host}/robots.txt could not be read, so nothing of this host was asked for. {why}")

    def understand(self, item: RunItem, asked: Asked) -> Settled:
        probe = Probe(bytes.fromhex(self.state.probe), self.start_key, self.state.same_for_all) if self.state.probe else None
        settled = settling.understand(item, asked, plan=self.plan, probe=probe)
        if settled.same_for_all:
            self.state.same_for_all = True
            self.save()  # before the first verdict that follows from it
        return settled

    def start_is_read(self, *, is_shell: bool) -> None:
        """Where every address gets the start's page because scripts make the real one, that page tells nothing."""
        self.state.start_seen = True
        if is_shell:
            self.state.probe, self.state.same_for_all = "", False

    def warn_of_start(self, settled: Settled) -> None:
        """Called with the verdict of the start page: where it gives no page, that is most of what there is to know of a run."""
        if settled.meaning.kind == Kind.REDIRECT:
            self._warn_of_redirect(settled)
        elif settled.meaning.kind in (Kind.SKIPPED, Kind.FAILED):
            self.start_is_refused(settled.meaning.text)

    def start_is_refused(self, text: str) -> None:
        self.state.warn(f"The start page {self.start} was not read, so no links of it were followed. {text}")

    def _warn_of_redirect(self, settled: Settled) -> None:
        try:
            location = absolute(settled.asked.answer.location, base=settled.asked.url)
        except UrlRefused as error:
            self.start_is_refused(str(error))
            return
        if refused := self.admission.judge(location).text:
            self.state.warn(f"The start page leads to {location}, which is not crawled: {refused}")
