"""What a crawl needs to know of a page that a server gave, from the same tree as its text."""

from typing import Any

from lxml import etree

from ingestion.crawl.links import page_links
from ingestion.extract.base import Served
from ingestion.extract.html_tree import Element


def describe_page(tree: Element, *, served: Served) -> dict[str, Any]:
    """Links and what the page says about following and keeping it; made of the whole tree, before anything is dropped from it.
    A link's own nofollow stands in its entry, that of the page or its header in `nofollow`."""
    found = page_links(tree, url=served.url, robots_header=served.robots_header, agent=served.agent)
    return {
        "links": [[link.url, link.text, link.nofollow] for link in found.links],
        "base": found.base,
        "canonical": found.canonical,
        "refresh": found.refresh,
        "noindex": found.noindex,
        "nofollow": found.nofollow,
        "cut": found.cut,
        "needs_javascript": False,
    }


def describe_nothing(*, served: Served) -> dict[str, Any]:
    """Of a body without a single element."""
    return describe_page(etree.Element("html"), served=served)
