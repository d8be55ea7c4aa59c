"""What a page says about itself: JSON-LD first, then meta elements, then <time>. Dates as plain days; nothing is guessed from text."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from ingestion.extract.html_tree import Element, text_of

MAX_JSON_CHARS, MAX_JSON_SCRIPTS, MAX_NODES = 512 * 1024, 20, 200
MAX_CHARS, MAX_NAME_CHARS, MAX_TAGS = 500, 80, 20

# schema.org types that speak of the page and not of its owner, its visitors or its ways.
_OF_THE_PAGE = re.compile(
    r"article|posting|page|report|howto|recipe|product|course|book|dataset|event|software|question|creativework|video", re.I
)
_DAY = re.compile(r"\s*((?:19[7-9]|20\d)\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?!\d)")
_ADDRESS = re.compile(r"\s*https?://", re.I)

_BYLINES = etree.XPath("descendant::a[@rel='author'] | descendant::*[@itemprop='author']")

_PUBLISHED = (
    "article:published_time", "og:published_time", "datepublished", "dcterms.created", "dcterms.issued", "dc.date.issued",
    "citation_publication_date", "citation_online_date", "parsely-pub-date", "pubdate", "publish-date", "publish_date", "publication_date",
    "dcterms.date", "dc.date", "date",
)  # fmt: skip
_MODIFIED = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified", "lastmod", "revised")
_AUTHOR = ("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "citation_author", "byl", "sailthru.author")
_TITLE = ("og:title", "twitter:title", "dc.title", "citation_title")
_DESCRIPTION = ("description", "og:description", "twitter:description", "dc.description")


@dataclass(frozen=True, slots=True)
class PageMetadata:
    title: str
    """As written for others; "" when only <title> and headings say it."""
    fields: dict[str, Any]
    """Of author, published, modified, site, description and tags those that the page names."""


def read_metadata(tree: Element) -> PageMetadata:
    """Made of the whole tree: JSON-LD stands in scripts, which are dropped later."""
    metas = _metas(tree)
    nodes = list(_nodes(tree))
    times = list(_times(tree))
    fields = {
        "author": ", ".join(_people(_values(nodes, "author"))) or _first(metas, _AUTHOR, unless=_ADDRESS) or _byline(tree),
        "published": _day(
            _texts(_values(nodes, "datePublished")), _all(metas, _PUBLISHED), (day for day, kind in times if kind == "published")
        ),
        "modified": _day(
            _texts(_values(nodes, "dateModified")), _all(metas, _MODIFIED), (day for day, kind in times if kind == "modified")
        ),
        "site": _first(metas, ("og:site_name", "application-name")),
        "description": _first(metas, _DESCRIPTION),
        "tags": _tags(metas),
    }
    if not fields["published"] and len(times) == 1:
        fields["published"] = _day([times[0][0]])
    title = _first(metas, _TITLE) or next(_texts(_values(nodes, "headline")), "")
    return PageMetadata(title=title, fields={key: value for key, value in fields.items() if value})


def _metas(tree: Element) -> dict[str, list[str]]:
    metas: dict[str, list[str]] = {}
    for meta in tree.iter("meta"):
        content = meta.get("content")
        if not content:
            continue
        for attribute in ("property", "name", "itemprop", "http-equiv"):
            if name := meta.get(attribute):
                metas.setdefault(name.strip().lower(), []).append(_plain(content))
    return metas


def _nodes(tree: Element) -> Iterator[dict[str, Any]]:
    """The objects of JSON-LD that describe the page, the most telling type first."""
    found: list[dict[str, Any]] = []
    for number, script in enumerate(tree.iter("script")):
        if number >= 10 * MAX_JSON_SCRIPTS or len(found) >= MAX_NODES:
            break
        if (script.get("type") or "").strip().lower() != "application/ld+json" or not 0 < len(script.text or "") <= MAX_JSON_CHARS:
            continue
        try:
            value = json.loads(script.text, strict=False)
        except (ValueError, RecursionError):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, dict):
                graph = node.get("@graph")
                found += [each for each in (graph if isinstance(graph, list) else [node]) if isinstance(each, dict)]
    found = [node for node in found if _OF_THE_PAGE.search(str(node.get("@type")))]
    yield from sorted(found, key=lambda node: "page" in str(node.get("@type")).lower())


def _values(nodes: Iterable[dict[str, Any]], key: str) -> Any:
    return next((value for node in nodes if (value := node.get(key))), None)


def _texts(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and each.strip():
            yield _plain(each)


def _people(value: Any) -> list[str]:
    names = [each.get("name") if isinstance(each, dict) else each for each in (value if isinstance(value, list) else [value])[:10]]
    return list(dict.fromkeys(name for name in _texts(names) if not _ADDRESS.match(name)))


def _byline(tree: Element) -> str:
    return next((name for each in _BYLINES(tree) if 1 < len(name := text_of(each)) < MAX_NAME_CHARS), "")


def _times(tree: Element) -> Iterator[tuple[str, str]]:
    """(text, kind) of the times in the document: a clock in the page's header is none of them."""
    for time in tree.iter("time"):
        if next(time.iterancestors("article", "main"), None) is None:
            continue
        names = f"{time.get('itemprop') or ''} {time.get('class') or ''}".lower()
        modified = "modified" in names or "updated" in names
        kind = "modified" if modified else "published" if "publish" in names or "pubdate" in time.attrib or "entry-date" in names else ""
        yield time.get("datetime") or text_of(time), kind


def _tags(metas: dict[str, list[str]]) -> list[str]:
    tags = metas.get("article:tag") or [tag for content in metas.get("keywords", []) for tag in content.split(",")]
    return list(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))[:MAX_TAGS]


def _all(metas: dict[str, list[str]], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from metas.get(name, ())


def _first(metas: dict[str, list[str]], names: Iterable[str], *, unless: re.Pattern[str] | None = None) -> str:
    return next((text for text in _all(metas, names) if text and not (unless and unless.match(text))), "")


def _day(*sources: Iterable[str]) -> str:
    return next((match[1] for texts in sources for text in texts if (match := _DAY.match(text))), "")


def _plain(text: str) -> str:
    return " ".join(text[: 4 * MAX_CHARS].split())[:MAX_CHARS]
