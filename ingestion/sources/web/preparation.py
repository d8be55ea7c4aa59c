"""Before the first page of a crawl: what robots.txt allows, which pages the sitemaps list, and how the site answers for what it has not.

A crawl keeps each step in its run's `crawl_state`, so that one which was killed goes on where it was.
"""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from ingestion.crawl.admission import Admission
from ingestion.crawl.robots import Robots
from ingestion.crawl.sitemaps import read_sitemap
from ingestion.crawl.soft404 import page_fingerprint
from ingestion.crawl.urls import absolute, identity, origin
from ingestion.models import RunItem
from ingestion.sources.web.frontier import Found
from ingestion.sources.web.hosts import refusal
from ingestion.sources.web.requests import SITEMAP_BYTES, Asked, Requests, Stopped
from ingestion.sources.web.state import SiteState
from ingestion.sources.web.visit import Part, Visit
from kb.schemas.web import Web

MAX_SITEMAPS = 20
MAX_SITEMAP_PAGES = 5_000
PROBE_BYTES = 256 * 1024


def prepare(site: Visit, requests: Requests, part: Part) -> bool:
    """Do what is left to do before pages are asked for; False if the slice ended before that."""
    state, host = site.state, origin(site.start)
    try:
        if site.hosts.get(host) is None:
            site.robots_came(host, site.hosts.read(host, requests))
        robots = site.hosts.get(host)
        if state.waiting is None:
            judged = site.admission.judge(site.start)
            # The start page is asked for whatever its own path is; it comes first, so that it is asked first.
            site.add([Found(site.start, judged.key, RunItem.Via.START, 0)])
            silent = robots.outcome == "unavailable"
            state.waiting, state.probed = ([], True) if silent else (first_sitemaps(site.web, robots), state.probed)
            site.save()
        while state.waiting:
            if part.is_over:
                return False
            site.add(read_next_sitemap(state, requests, site.admission))
            site.save()
            part.beat()
        if not state.probed:
            probe_site(state, requests, web=site.web, robots=robots)
        state.ready = True
        site.save()
    except Stopped:
        return False
    return True


def first_sitemaps(web: Web, robots: Robots) -> list[str]:
    """Configured ones, then those of robots.txt; the conventional address only where neither names any and robots.txt allows it."""
    named = list(dict.fromkeys([*web.sitemap_urls, *(robots.sitemaps if web.respect_robots else ())]))
    if named:
        return named
    usual = f"{origin(web.start_url)}/sitemap.xml"
    return [usual] if refusal(robots, usual) is None else []


def read_next_sitemap(state: SiteState, requests: Requests, admission: Admission) -> list[Found]:
    """Read one of the waiting sitemaps; the pages that it lists, at depth 0. Raises `Stopped`."""
    url = state.waiting[0]
    if sum(each["outcome"] != "left_out" for each in state.sitemaps) >= MAX_SITEMAPS:
        state.sitemaps += [_note(each, "left_out", f"Only {MAX_SITEMAPS} sitemaps are read in a run.") for each in state.waiting]
        state.waiting = []
        return []
    asked = requests.ask_file(url, max_bytes=SITEMAP_BYTES)
    state.count(asked)
    state.waiting = state.waiting[1:]
    if asked.failure is not None or asked.answer.status != 200:
        state.sitemaps.append(_unreadable(url, asked))
        return []
    left = MAX_SITEMAP_PAGES - state.sitemap_pages
    # One more than fits: that there are more is what matters.
    sitemap = read_sitemap(asked.answer.body, url=asked.answer.url, cut=asked.answer.cut, max_urls=left + 1)
    pages, problem = sitemap.pages[:left], sitemap.problem
    if len(sitemap.pages) > left:
        problem = f"Only {MAX_SITEMAP_PAGES:,} pages of sitemaps are taken in a run."
    elif not sitemap.whole and not problem:
        problem = "It did not arrive whole."
    state.sitemap_pages += len(pages)
    state.sitemaps.append(_note(url, "read", problem, pages=len(pages)))
    known = {identity(each["url"]) for each in state.sitemaps} | {identity(each) for each in state.waiting}
    state.waiting += [child for child in dict.fromkeys(sitemap.children) if identity(child) not in known]
    return list(_listed(pages, admission))


def _listed(pages: Iterable[str], admission: Admission) -> Iterable[Found]:
    for page in pages:
        judged = admission.judge(page)
        yield Found(page, judged.key, RunItem.Via.SITEMAP, 0, None, judged.reason, judged.text)


def _unreadable(url: str, asked: Asked) -> dict[str, Any]:
    if asked.answer is not None and asked.answer.status in (404, 410):
        return _note(url, "none", "")
    why = asked.failure.message if asked.failure is not None else f"The server answers {asked.answer.status}."
    return _note(url, "unreadable", why)


def _note(url: str, outcome: str, problem: str, *, pages: int = 0) -> dict[str, Any]:
    return {"url": url, "outcome": outcome, "pages": pages, "problem": problem}


def probe_site(state: SiteState, requests: Requests, *, web: Web, robots: Robots) -> None:
    """Ask for an address that nobody has. A site that answers it with a page answers so for pages that are gone. Raises `Stopped`."""
    made_up = absolute(f"{web.path_prefix}lectern-{uuid4().hex}", base=web.start_url)
    if refusal(robots, made_up) is None:
        asked = requests.ask_file(made_up, max_bytes=PROBE_BYTES)
        state.count(asked)
        answer = asked.answer
        if answer is not None and answer.status == 200 and "html" in (answer.media_type or "html"):
            state.probe = page_fingerprint(answer.body, url=made_up).hex()
    state.probed = True
