"""Asking a site: every request waits for its turn at its host, which all workers and runs share."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, get_ident

from ingestion import pacing
from ingestion.crawl.fetch import Answer, Fetcher, FetchFailed
from ingestion.crawl.urls import UrlRefused, absolute, identity, origin

HOPS = 5
ROBOTS_BYTES = SITEMAP_BYTES = 1024 * 1024


class Stopped(Exception):
    """The slice ends; what waited for its turn was not asked for."""


@dataclass(slots=True)
class Asked:
    """An answer, or why there is none; `url` is what was asked last, `requests` how many it took."""

    url: str
    answer: Answer | None
    failure: FetchFailed | None
    requests: int
    rendered: dict[str, float] | None = None  # of a page that a browser made: what it took


class Requests:
    """`delay` is a host's pause in seconds, `at_most` how long a turn may be away: a later one is not waited for."""

    def __init__(self, fetcher: Fetcher, *, delay: Callable[[str], float], at_most: float) -> None:
        self._fetcher = fetcher
        self._delay = delay
        self._at_most = at_most
        self._stopping = Event()
        self._asked: dict[int, tuple[str, float]] = {}  # by thread: the host that it asks, and since when

    def stop(self) -> None:
        self._stopping.set()

    def ask(self, url: str, *, max_bytes: int, etag: str = "", last_modified: str = "", partial: bool = False) -> Answer:
        """One request. Raises `FetchFailed`, and `Stopped` when the slice ends before its turn."""
        self.wait_for_turn(origin(url))
        self._asked[get_ident()] = origin(url), time.monotonic()
        try:
            return self._fetcher.get(url, max_bytes=max_bytes, etag=etag, last_modified=last_modified, partial=partial)
        finally:
            self._asked.pop(get_ident(), None)

    def slow_hosts(self, seconds: float) -> set[str]:
        """Hosts that were asked so long ago and have not answered; time that was waited for a turn does not count."""
        before = time.monotonic() - seconds
        return {host for host, since in list(self._asked.values()) if since < before}

    def wait_for_turn(self, host: str) -> None:
        """Raises `Stopped` when the slice ends before it."""
        wait = pacing.reserve(host, delay=self._delay(host), at_most=self._at_most)
        if wait > self._at_most or self._stopping.wait(wait):
            raise Stopped
        if not wait:
            return
        pause = pacing.paused_for(host)  # it may have asked for one since the turn was taken
        if pause > self._at_most or self._stopping.wait(pause):
            raise Stopped

    def ask_page(self, url: str, *, max_bytes: int, etag: str = "", last_modified: str = "") -> Asked:
        """A page under its address. A redirect to another spelling of the same address is followed here; others are the frontier's."""
        key = identity(url)
        for number in range(1, HOPS + 1):
            try:
                answer = self.ask(url, max_bytes=max_bytes, etag=etag, last_modified=last_modified)
            except FetchFailed as failure:
                return Asked(url, None, failure, number)
            following = _location(answer)
            if not following or following == url or identity(following) != key:
                return Asked(url, answer, None, number)
            url = following
        return Asked(url, None, FetchFailed("server_error", f"It redirects in a circle ({HOPS} times). The site has to mend that."), HOPS)

    def ask_file(self, url: str, *, max_bytes: int) -> Asked:
        """A robots.txt or sitemap, wherever it redirects to."""
        for number in range(1, HOPS + 2):
            try:
                answer = self.ask(url, max_bytes=max_bytes, partial=True)
            except FetchFailed as failure:
                return Asked(url, None, failure, number)
            following = _location(answer)
            if not following:
                return Asked(url, answer, None, number)
            url = following
        return Asked(url, None, FetchFailed("unreachable", f"It redirects more than {HOPS} times."), HOPS + 1)


def _location(answer: Answer) -> str:
    if not 300 <= answer.status < 400 or answer.status == 304 or not answer.location:
        return ""
    try:
        return absolute(answer.location, base=answer.url)
    except UrlRefused:
        return ""
