"""Pages that scripts make, where `web.render` is auto: they go back to the crawl, which has a browser make them, and are then read
like any page."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

from ingestion.children import renderer
from ingestion.crawl.fetch import Answer, Fetcher, FetchFailed
from ingestion.crawl.soft404 import page_fingerprint
from ingestion.crawl.urls import absolute, identity, origin
from ingestion.models import RunItem
from ingestion.render import Rendered, RenderFailed, RenderLimits
from ingestion.sources.web.hosts import refusal
from ingestion.sources.web.requests import Asked, Requests, Stopped
from ingestion.sources.web.site import Site

LIMITS = RenderLimits()
NO_PROBE = "-"


def is_wanted(item: RunItem) -> bool:
    """Whether the page is to be made by a browser, because what the server gave for it was a shell."""
    return bool((item.response or {}).get("render"))


def was_rendered(item: RunItem) -> bool:
    return bool((item.response or {}).get("rendered"))


class Rendering:
    """One slice's pages, one after the other; those whose turn does not come in it are left to the next."""

    def __init__(self, site: Site, requests: Requests, fetcher: Fetcher, *, until: float) -> None:
        self._site = site
        self._requests = requests
        self._fetcher = fetcher
        self._until = until
        self._limits = replace(LIMITS, max_html_bytes=site.plan.settings.max_bytes_per_page)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="render")

    def submit(self, url: str) -> Future[Asked]:
        return self._thread.submit(self._make, url)

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def _make(self, url: str) -> Asked:
        try:
            if not self._site.state.rendered_probe:
                self._site.state.rendered_probe = self._probe()
            rendered = self._render(url)
        except RenderFailed as failure:
            text = f"The page is made by scripts, and no browser made it. {failure.message}"
            return Asked(url, None, FetchFailed("needs_javascript", text), 1)
        is_same = page_fingerprint(rendered.html, url=url).hex() == self._site.state.rendered_probe
        if is_same and identity(url) != self._site.start_key:
            text = "Its scripts show what they show for made-up addresses: there is no such page."
            return Asked(url, None, FetchFailed("soft_404", text), 1)
        return Asked(url, _answer(url, rendered), None, 1, rendered=_facts(rendered))

    def _probe(self) -> str:
        """What the site's scripts show for an address that nobody has: a shell answers every address with 200."""
        url = absolute(f"{self._site.web.path_prefix}lectern-{uuid4().hex}", base=self._site.start)
        robots = self._site.hosts.known(origin(url))
        if robots is None or refusal(robots, url) is not None:
            return NO_PROBE
        try:
            return page_fingerprint(self._render(url).html, url=url).hex()
        except RenderFailed as failure:
            if failure.reason == "no_browser":
                raise
            return NO_PROBE

    def _render(self, url: str) -> Rendered:
        if time.monotonic() > self._until:
            raise Stopped
        self._requests.wait_for_turn(origin(url))
        rendered = renderer().render(url, ask=self._ask, user_agent=self._site.agent, limits=self._limits)
        self._site.state.bytes += rendered.bytes
        return rendered

    def _ask(self, url: str, *, max_bytes: int, accept: str) -> Answer:
        """A page and what it is made of are one visit, for which it waited its turn. The robots.txt of its host holds for its scripts and
        their data too; those of other hosts, which no page of ours is on, are not read."""
        robots = self._site.hosts.known(origin(url))
        if robots is not None and (refused := refusal(robots, url)):
            raise FetchFailed(*refused)
        return self._fetcher.get(url, max_bytes=max_bytes, accept=accept)


def _answer(url: str, rendered: Rendered) -> Answer:
    """As if the server had sent what the browser made. Its validators belong to the shell. Where scripts went on to another page of the
    site, that is a redirect."""
    made = replace(
        rendered.document, url=url, body=rendered.html, media_type="text/html", charset="utf-8", etag="", last_modified="", location=""
    )
    moved = rendered.url.startswith(("http://", "https://")) and identity(rendered.url) != identity(url)
    return replace(made, status=302, location=rendered.url) if moved else made


def _facts(rendered: Rendered) -> dict[str, float]:
    return {
        "requests": rendered.requests,
        "refused": rendered.refused,
        "bytes": rendered.bytes,
        "seconds": round(rendered.seconds, 1),
    }
