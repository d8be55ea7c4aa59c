"""A scriptable website on loopback, with every bad habit, that logs what it is asked.

    with Site() as site:
        site.put("/", page("Home", paragraphs(1), links=["/a"]), etag="auto")
        site.put("/a", page("A", paragraphs(2)))
        site.put("/calendar/*", calendar)                      # a function of the request answers
        site.put("/robots.txt", "User-agent: *\\nDisallow: /private/\\n", content_type="text/plain")
        site.fault("/a", refusal(503, retry_after=2), times=2)  # twice, then the page again
        ...                                                     # site.url("/"), site.resolver, site.allowed
        assert [request.status for request in site.requests("/a")] == [503, 503, 200]

`put`, `remove` and `fault` work while it runs. Names lead to it by the Host header; `site.resolve` says what a name leads to.
"""

from tests.servers.site.answers import Answer, bomb, maintenance, redirect, refusal
from tests.servers.site.pages import Link, noisy, page, paragraph, paragraphs
from tests.servers.site.server import Request, Site
from tests.servers.site.sitemaps import atom, index, rss, text_sitemap, urlset
from tests.servers.site.traps import calendar, growing_query, repeating_path, spiral

__all__ = [
    "Answer",
    "Link",
    "Request",
    "Site",
    "atom",
    "bomb",
    "calendar",
    "growing_query",
    "index",
    "maintenance",
    "noisy",
    "page",
    "paragraph",
    "paragraphs",
    "redirect",
    "refusal",
    "repeating_path",
    "rss",
    "spiral",
    "text_sitemap",
    "urlset",
]
