"""What a crawl needs to know of a page that a server gave, from the same tree as its text."""

from typing import Any

from lxml import html

from ingestion.crawl.links import page_links
from ingestion.extract.base import Served

# Rules with a value of their own, which a header writes like the name of a robot.
_RULES_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


def describe_page(tree: html.HtmlElement, *, served: Served) -> dict[str, Any]:
    """Links and what the page says about following and keeping it; made of the whole tree, before anything is dropped from it."""
    found = page_links(tree, url=served.url)
    rules = header_rules(served.robots_header)
    nofollow = found.nofollow or not rules.isdisjoint({"nofollow", "none"})
    return {
        "links": [[link.url, link.text, link.nofollow or nofollow] for link in found.links],
        "base": found.base,
        "canonical": found.canonical,
        "refresh": found.refresh,
        "noindex": found.noindex or not rules.isdisjoint({"noindex", "none"}),
        "nofollow": nofollow,
        "needs_javascript": False,
    }


def blank_page(served: Served) -> dict[str, Any]:
    """Of a body without a single element."""
    return describe_page(html.Element("html"), served=served)


def header_rules(value: str) -> set[str]:
    """The rules of X-Robots-Tag for everybody; what follows "somebot:" is for that robot."""
    rules, for_all = set(), True
    for part in value.lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _RULES_WITH_VALUE:
            for_all, part = name.strip() == "*", rest
        if for_all:
            rules.add(part.strip())
    return rules
