"""A living website on a real server, and what goes wrong with it while it is crawled."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from tests.benchmarks.soak.site_life import START, Life
from tests.benchmarks.soak.site_truth import Kind, Listing, Node, Trouble, Weather
from tests.benchmarks.soak.texts import Text
from tests.servers.site import Answer, Request, Site, maintenance, noisy, page, redirect, refusal, urlset

LOGIN = "/login"


@dataclass
class Website:
    """`serve` puts the present life of the site on its server."""

    server: Site
    life: Life
    chance: random.Random
    patient: bool = True  # pages may be so slow that the crawl gives them up

    def serve(self) -> None:
        for path, node in self.life.nodes.items():
            if node.kind == Kind.GONE:
                self.server.put(path, refusal(404 if len(path) % 2 else 410))
            elif node.kind == Kind.MOVED:
                self.server.put(path, redirect(node.target, 301))
            else:
                self._serve_page(path, node)
        self.server.put(
            "/robots.txt", f"User-agent: *\nDisallow: /private/\nSitemap: {self.server.url('/map.xml')}\n", content_type="text/plain"
        )
        self.server.put("/map.xml", self.sitemap, content_type="application/xml")
        self.server.put(LOGIN, page("Log in", ["Please log in with the name and the password that you were given."]))

    def _serve_page(self, path: str, node: Node) -> None:
        """Each page has habits of its own, the same in every run: a clock and a nonce, an ETag that stays or rotates, a charset."""
        habit = sum(path.encode()) % 5
        options = {"links": [self._spelled(link) for link in node.links], "navigation": [START], "body": html_of(node.text)}
        title = f"Document {node.text.serial}"
        if habit == 0:
            self.server.put(path, noisy_with(title, options))
        elif habit == 1:
            self.server.put(path, page(title, charset="gbk", **options), charset="gbk", content_type="text/html")
        else:
            self.server.put(path, page(title, **options), etag=("", "", "auto", "rotating", "auto")[habit])

    def _spelled(self, path: str) -> str:
        """The same page under the many names that sites give it."""
        return self.chance.choice([path, path, f"{path}#top", f"{path}?utm_source=news", self.server.url(path), f"{path}?gclid=1#x"])

    @property
    def sitemap(self) -> bytes:
        return urlset(self.server.url(path) for path, node in sorted(self.life.nodes.items()) if node.listed)


def html_of(text: Text) -> str:
    """Parts of a text are `## Heading`, an empty line, and a paragraph."""
    blocks = (part.removeprefix("## ").partition("\n\n") for part in text.parts)
    return "".join(f"<h2>{escape(heading)}</h2>\n<p>{escape(prose)}</p>\n" for heading, _, prose in blocks)


def noisy_with(title: str, options: dict[str, Any]) -> Callable[[Request], str]:
    """A page with a clock in it that also has a body of its own."""
    own = options["body"]
    make = noisy(title, **{key: value for key, value in options.items() if key != "body"})
    return lambda request: make(request).replace("</h1>\n", f"</h1>\n{own}", 1)


# --- what goes wrong -----------------------------------------------------------------------------------------------------

FAILURES: dict[str, Answer] = {
    "500": refusal(500),
    "503": refusal(503, retry_after=1),
    "429": refusal(429, retry_after=1),
    "401": refusal(401),
    "403": refusal(403),
    "408": refusal(408, retry_after=1),
    "dropped": Answer(drop=True),
    "cut": Answer(body="<html><body><p>Half of a page. " * 90, cut_at=1500),
    "timeout": Answer(delay=15),
}


def spoil(site: Website, chance: random.Random, kind: str) -> tuple[str, Weather]:
    """Put a fault of this kind in front of the site; what it is, and what it means."""
    return SPOILERS[kind](site, chance)


def _clear(site: Website, chance: random.Random) -> tuple[str, Weather]:
    return "clear", Weather()


def _pages(site: Website, chance: random.Random) -> tuple[str, Weather]:
    """Some pages fail, each in its way; sometimes only the first request of each."""
    names = [name for name in FAILURES if name != "timeout"]
    paths = sorted(path for path, node in site.life.nodes.items() if node.kind == Kind.PAGE)
    chosen = chance.sample(paths, min(len(paths), chance.choice((1, 1, 2, 4))))
    slow = site.patient and chance.random() < 0.25
    told, troubled = [], {}
    for path in chosen:
        name = "timeout" if slow and path == chosen[0] else chance.choice(names)
        once = name != "timeout" and chance.random() < 0.2
        site.server.fault(lambda request, path=path: request.path == path, FAILURES[name], times=1 if once else float("inf"))
        troubled[path] = Trouble.PERHAPS if once else Trouble.SURELY
        told.append(f"{path} {name}{' once' if once else ''}")
    return f"pages fail: {', '.join(told)}", Weather(troubled=troubled)


def _start_gone(site: Website, chance: random.Random) -> tuple[str, Weather]:
    site.server.fault(START, refusal(404))
    return "the start page is 404", Weather(absent=frozenset({START}))


def _all(site: Website, chance: random.Random) -> tuple[str, Weather]:
    name = chance.choice(["500", "503", "401", "403", "dropped"])
    site.server.fault("*", FAILURES[name])
    return f"everything is {name}", Weather(deaf=True)


def _away(site: Website, chance: random.Random) -> tuple[str, Weather]:
    site.server.stop()
    return "the site is away", Weather(deaf=True)


def _maintenance(site: Website, chance: random.Random) -> tuple[str, Weather]:
    site.server.fault("*", maintenance())
    return "maintenance with 200 for everything", Weather(deaf=True)


def _login_wall(site: Website, chance: random.Random) -> tuple[str, Weather]:
    site.server.fault(lambda request: request.path != LOGIN, redirect(LOGIN))
    return "a login wall", Weather(deaf=True)


def _robots(site: Website, chance: random.Random) -> tuple[str, Weather]:
    answer = chance.choice([refusal(503), Answer(drop=True), Answer(body="User-agent: *\nDisallow: /\n", content_type="text/plain")])
    site.server.fault("/robots.txt", answer)
    return f"robots.txt {answer.status or 'dropped'}", Weather(deaf=True)


def _cut_sitemap(site: Website, chance: random.Random) -> tuple[str, Weather]:
    body = site.sitemap
    cut = body[: chance.randint(1, max(1, body.rindex(b"</urlset>") - 1))]
    site.server.fault("/map.xml", Answer(body=cut, content_type="application/xml"))
    return "the sitemap is cut short", Weather(listing=Listing.PERHAPS, sitemap_whole=False)


def _no_sitemap(site: Website, chance: random.Random) -> tuple[str, Weather]:
    status = chance.choice([404, 410, 500, 503, 429, 403])
    site.server.fault("/map.xml", refusal(status))
    return f"the sitemap is {status}", Weather(listing=Listing.NONE, sitemap_whole=status in (404, 410))


SPOILERS: dict[str, Callable[[Website, random.Random], tuple[str, Weather]]] = {
    "clear": _clear,
    "pages": _pages,
    "start gone": _start_gone,
    "all": _all,
    "away": _away,
    "maintenance": _maintenance,
    "login": _login_wall,
    "robots": _robots,
    "cut sitemap": _cut_sitemap,
    "no sitemap": _no_sitemap,
}
