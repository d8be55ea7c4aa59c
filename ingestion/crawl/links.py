"""What a page says about other pages: its links, its canonical address, a refresh, and whether it wants to be indexed and followed.

Takes the tree as it was parsed: hidden menus and frames are links too, so this comes before hidden elements are dropped."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lxml import etree

from ingestion.crawl.urls import UrlRefused, absolute, identity

MOST_LINKS = 5_000
MOST_CHARACTERS = 2_000_000  # of a page's addresses: a long base makes short links long ones
LONGEST_TEXT = 200

_PIECES_OF_TEXT = 50
_QUICK_REFRESH = 10.0  # seconds; a page that stays longer is meant to be read
_REFRESH = re.compile(r"\s*(\d*)(?:\.[\d.]*)?\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.IGNORECASE | re.DOTALL)
# Directives whose value follows a colon, as the name of an agent does.
_VALUED_DIRECTIVES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_FRAMES = frozenset({"iframe", "frame"})
_TAGS = ("a", "area", "iframe", "frame", "link", "meta")


@dataclass(frozen=True, slots=True)
class Link:
    url: str
    text: str = ""
    nofollow: bool = False


@dataclass(frozen=True, slots=True)
class PageLinks:
    """`links` are distinct by identity, in the order of the page; `cut`: there are more; `refresh` is where the page sends its reader
    within seconds."""

    base: str
    links: tuple[Link, ...] = ()
    canonical: str = ""
    refresh: str = ""
    noindex: bool = False
    nofollow: bool = False
    cut: bool = False


class _Links(dict[str, Link]):
    """By identity, within bounds."""

    characters = 0
    cut = False

    def take(self, key: str, link: Link) -> None:
        self.characters += len(link.url)
        if len(self) >= MOST_LINKS or self.characters > MOST_CHARACTERS:
            self.cut = True
        else:
            self[key] = link


def page_links(tree: etree._Element, *, url: str, robots_header: str = "", agent: str = "") -> PageLinks:
    """`robots_header` is the `X-Robots-Tag` of the answer, `agent` the product token that directives may name beside `robots`."""
    base = _base(tree, url)
    links = _Links()
    canonical = refresh = ""
    directives = _directives(robots_header, agent)
    for element in tree.iter(*_TAGS):
        match element.tag:
            case "link":
                relations = _tokens(element.get("rel"))
                if "canonical" in relations and not canonical and _in_head(element):
                    canonical = _resolve(element.get("href"), base)
                if relations & {"next", "prev"}:
                    _add(links, element.get("href"), element, base)
            case "meta":
                if (element.get("http-equiv") or "").strip().lower() == "refresh" and not refresh:
                    refresh = _refresh(element, base, links)
                elif (element.get("name") or "").strip().lower() in ({"robots", agent.lower()} - {""}):
                    directives |= _words(element.get("content") or "")
            case _:
                _add(links, element.get("src" if element.tag in _FRAMES else "href"), element, base)
    return PageLinks(
        base=base,
        links=tuple(links.values()),
        canonical=canonical,
        refresh=refresh,
        noindex=bool(directives & {"noindex", "none"}),
        nofollow=bool(directives & {"nofollow", "none"}),
        cut=links.cut,
    )


def _base(tree: etree._Element, url: str) -> str:
    """Only the first `<base>` with an address counts, and only where it is one of the web."""
    href = next((element.get("href") for element in tree.iter("base") if element.get("href") is not None), None)
    return _resolve(href, url) or url


def _add(links: _Links, href: str | None, element: etree._Element, base: str) -> None:
    if href is None or href.lstrip().startswith("#"):
        return
    url = _resolve(href, base)
    if not url:
        return
    key = identity(url)
    nofollow = "nofollow" in _tokens(element.get("rel"))
    known = links.get(key)
    if known is None:
        links.take(key, Link(url, "" if links.cut else _text(element), nofollow))
    elif (known.nofollow and not nofollow) or not known.text:
        links[key] = Link(known.url, known.text or _text(element), known.nofollow and nofollow)


def _resolve(href: str | None, base: str) -> str:
    if href is None:
        return ""
    try:
        return absolute(href, base=base)
    except UrlRefused:
        return ""


def _refresh(element: etree._Element, base: str, links: dict[str, Link]) -> str:
    match = _REFRESH.match(element.get("content") or "")
    # In noscript it is for browsers whose scripts are switched off, and leads to a page that says so.
    if match is None or next(element.iterancestors("noscript"), None) is not None:
        return ""
    href = (match[2] or match[3] or match[4] or "").strip()
    if not href:
        return ""
    if float(match[1] or 0) <= _QUICK_REFRESH:
        return _resolve(href, base)
    _add(links, href, element, base)
    return ""


def _directives(header: str, agent: str) -> set[str]:
    """Directives for everybody and for us: `noindex, otherbot: nofollow` has one of them."""
    found: set[str] = set()
    ours = True
    for part in header.lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _VALUED_DIRECTIVES:
            ours = name.strip() == agent.lower()
            part = rest
        if ours:
            found.add(part.strip())
    return found


def _words(content: str) -> set[str]:
    return set(re.split(r"[\s,;]+", content.lower()))


def _tokens(relations: str | None) -> set[str]:
    return set(relations.lower().split()) if relations else set()


def _in_head(element: etree._Element) -> bool:
    """What stands in the body may have been written by a visitor."""
    return next(element.iterancestors("body"), None) is None


def _text(element: etree._Element) -> str:
    if element.tag == "a":
        text = " ".join(" ".join(islice(_pieces(element), _PIECES_OF_TEXT)).split())
    else:
        text = " ".join((element.get("alt") or element.get("title") or "").split())
    return text[:LONGEST_TEXT]


def _pieces(element: etree._Element) -> Iterator[str]:
    """Text of a link, with the words of its images."""
    for node in element.iter():
        if node.tag == "img":
            yield (node.get("alt") or "")[: 2 * LONGEST_TEXT]
        elif isinstance(node.tag, str) and node.text:
            yield node.text[: 2 * LONGEST_TEXT]
        if node is not element and node.tail:
            yield node.tail[: 2 * LONGEST_TEXT]
