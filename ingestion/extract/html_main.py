"""Which part of a page is the document: trafilatura points at it, our own writer renders it, so that no list item or cell is lost."""

import logging
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lxml import etree, html

from ingestion.extract.html_tree import drop

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
logging.getLogger("htmldate").setLevel(logging.CRITICAL)

# The part that is kept holds this share of the text that was found to be the document's.
REGION_SHARE = 0.92
# Of a page without its navigation: below this share the finder has lost the document and all of it is kept.
MIN_SHARE = 0.3
MIN_FULLER_SHARE = 0.1
MIN_LINKS, LINK_SHARE = 4, 0.7
MIN_SPARED_CHARS, SPARED_CHARS, SPARED_PIECES = 40, 200, 60
# trafilatura takes seconds and hundreds of MB for pages of this size, and pages of this size are documents.
MAX_FINDER_ELEMENTS = 25_000

FURNITURE = frozenset({"nav", "footer", "aside", "menu", "dialog"})
FURNITURE_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "dialog", "alertdialog"})
_FURNITURE_NAME = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|side-?bar|breadcrumbs?|footer|cookies?|consent|share|sharing|social|related|newsletter|"
    r"subscribe|advert(?:isement)?s?|promo|popup|modal|skip-link|toc-?nav|pagination|pager|comments?-form|printfooter|mw-editsection|headerlink)(?:$|[\s_-])",
    re.IGNORECASE,
)
# Consent dialogs hold much prose, which is taken for the document where that is a list.
_CONSENT_NAME = re.compile(
    r"onetrust|(?:^|[\s_-])ot-sdk|cookie-?(?:banner|consent|notice|law|policy|bar|popup)|gdpr|cookiebot|didomi|usercentrics", re.IGNORECASE
)
_WORD = re.compile(r"\w+")
NEVER_FURNITURE = frozenset({"html", "body", "main", "article", "h1", "h2", "h3", "h4", "pre", "code", "table", "tr", "td"})
NEVER_SPLIT = frozenset({"p", "table", "tbody", "tr", "ul", "ol", "dl", "pre", "blockquote"})


@dataclass(frozen=True, slots=True)
class MainText:
    element: html.HtmlElement
    found: Any
    """trafilatura's Document with the page's metadata; None when it found nothing or was not asked."""


def main_text(tree: html.HtmlElement, *, url: str | None) -> MainText:
    body = tree.find("body") if tree.find("body") is not None else tree
    _drop_consent(body)
    found = _find(tree, url=url) if _is_small(tree) else None
    for script in list(tree.iter("script")):
        drop(script)
    sizes = _Sizes(body)
    furniture = _furniture(body, sizes, wanted=None)
    fuller = sizes.text[body] - sum(sizes.text[each] for each in furniture)
    if found is not None and found.body is not None:
        pieces = {squeezed for piece in found.body.itertext() if (squeezed := _squeezed(piece))}
        if sum(map(len, pieces)) >= MIN_SHARE * fuller:
            region = _region(body, pieces)
            _drop_all(_furniture(region, sizes, wanted="".join(_squeezed(piece) for piece in found.body.itertext())))
            return MainText(region, found)
    if fuller >= MIN_FULLER_SHARE * sizes.text[body]:
        _drop_all(furniture)  # else the names are not used in their usual sense
    return MainText(body, found)


class _Sizes:
    """Letters, and letters inside links, of every element below one: counted once, bottom up."""

    def __init__(self, root: html.HtmlElement) -> None:
        self.elements = list(root.iter(etree.Element))  # held: the numbers are kept by the objects' identity
        self.text: dict[html.HtmlElement, int] = dict.fromkeys(self.elements, 0)
        self.linked = dict(self.text)
        self.links = dict(self.text)
        for element in reversed(self.elements):
            self.text[element] += _letters(element.text)
            if element.tag == "a":
                self.linked[element], self.links[element] = self.text[element], 1
            parent = element.getparent()
            if element is not root and parent in self.text:
                self.text[parent] += self.text[element] + _letters(element.tail)
                self.linked[parent] += self.linked[element]
                self.links[parent] += self.links[element]


def _is_small(tree: html.HtmlElement) -> bool:
    return next(islice(tree.iter(), MAX_FINDER_ELEMENTS, None), None) is None


def _drop_consent(body: html.HtmlElement) -> None:
    for element in list(body.iterdescendants("div", "section", "aside", "form")):
        if _CONSENT_NAME.search(f"{element.get('class') or ''} {element.get('id') or ''}") and element.find(".//main") is None:
            drop(element)


def _find(tree: html.HtmlElement, *, url: str | None) -> Any:
    from trafilatura import bare_extraction

    try:
        return bare_extraction(
            tree,
            url=url,
            output_format="markdown",
            include_comments=False,
            include_tables=True,
            include_formatting=True,
            include_links=True,
            with_metadata=True,
            date_extraction_params={"original_date": True, "extensive_search": False},
        )
    except (RecursionError, etree.LxmlError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        return None  # its heuristics meet pages that nobody foresaw; the page is then kept whole


def _region(body: html.HtmlElement, pieces: set[str]) -> html.HtmlElement:
    """The smallest element that holds nearly all of the found text."""
    elements = list(body.iter(etree.Element))
    weights = dict.fromkeys(elements, 0)
    for element in reversed(elements):
        own = (_squeezed(piece) for piece in (element.text, *(child.tail for child in element)) if piece)
        weights[element] += sum(len(piece) for piece in own if piece in pieces)
        if element is not body:
            weights[element.getparent()] += weights[element]
    region = body
    while total := weights[body]:
        child = max((each for each in region if each in weights), key=weights.__getitem__, default=None)
        if child is None or weights[child] < REGION_SHARE * total or child.tag in NEVER_SPLIT:
            break
        region = child
    return region


def _furniture(root: html.HtmlElement, sizes: _Sizes, *, wanted: str | None) -> list[html.HtmlElement]:
    """The outermost elements that are navigation and the like. `wanted` is the text that the finder took for the document:
    it spares what is in it, and lists of links that are not in it go too."""
    found: list[html.HtmlElement] = []
    inside: set[html.HtmlElement] = set()
    for child in root.iterdescendants(etree.Element):
        if child.getparent() in inside:
            inside.add(child)
            continue
        if not _is_furniture(child) and (wanted is None or not _is_link_list(child, sizes)):
            continue
        # A name like "page-with-sidebar" may stand on the element around everything.
        if sizes.text[child] > sizes.text[root] // 2 or (wanted is not None and _is_wanted(child, sizes, wanted)):
            continue
        found.append(child)
        inside.add(child)
    return found


def _drop_all(elements: list[html.HtmlElement]) -> None:
    for element in elements:
        drop(element)


def _is_furniture(element: html.HtmlElement) -> bool:
    if element.tag in FURNITURE or (element.get("role") or "").lower() in FURNITURE_ROLES:
        return True
    if element.tag in NEVER_FURNITURE:
        return False
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    return bool(names.strip()) and _FURNITURE_NAME.search(names) is not None


def _is_link_list(element: html.HtmlElement, sizes: _Sizes) -> bool:
    if element.tag not in ("ul", "ol", "div", "section"):
        return False
    return sizes.links[element] >= MIN_LINKS and sizes.linked[element] > LINK_SHARE * sizes.text[element]


def _is_wanted(element: html.HtmlElement, sizes: _Sizes, wanted: str) -> bool:
    if sizes.text[element] <= MIN_SPARED_CHARS:
        return False
    beginning = "".join(_squeezed(piece) for piece in islice(element.itertext(), SPARED_PIECES))
    return beginning[:SPARED_CHARS] in wanted


def _squeezed(text: str) -> str:
    return "".join(_WORD.findall(text)).lower()


def _letters(text: str | None) -> int:
    return sum(map(len, _WORD.findall(text))) if text else 0
