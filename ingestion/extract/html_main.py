"""Which part of a page is the document: trafilatura points at it, our own writer renders it, so that no list item or cell is lost."""

import logging
import re
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from lxml import etree, html

from ingestion.extract.html_tree import drop

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
logging.getLogger("htmldate").setLevel(logging.CRITICAL)

# The part that is kept holds this share of the text that was found to be the document's.
REGION_SHARE = 0.92
# Of a page without its navigation: below this share the finder has lost the document and all of it is kept.
MIN_SHARE = 0.3
MIN_LINKS, LINK_SHARE = 4, 0.7
MIN_SPARED_CHARS, SPARED_CHARS = 40, 200

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
    """trafilatura's Document with the page's metadata; None when it found nothing."""


def main_text(tree: html.HtmlElement, *, url: str | None) -> MainText:
    body = tree.find("body") if tree.find("body") is not None else tree
    _drop_consent(body)
    found = _find(tree, url=url)
    for script in list(tree.iter("script")):
        drop(script)
    if found is None or found.body is None:
        return MainText(_without_furniture(body, wanted=None), found)
    wanted = Counter(_WORD.findall(" ".join(found.body.itertext())))
    fuller = _without_furniture(deepcopy(body), wanted=None)
    if wanted.total() < MIN_SHARE * len(_WORD.findall(fuller.text_content())):
        return MainText(fuller, found)
    text = _squeezed(" ".join(found.body.itertext()))
    return MainText(_without_furniture(_region(body, text), wanted=text), found)


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


def _region(body: html.HtmlElement, text: str) -> html.HtmlElement:
    """The smallest element that holds nearly all of the found text."""
    weights: dict[html.HtmlElement, int] = {}
    for element in body.iter(etree.Element):
        own = [element.text, *(child.tail for child in element)]
        pieces = [_squeezed(piece) for piece in own if piece]
        weight = sum(len(piece) for piece in pieces if piece and piece in text)
        if weight:
            for holder in (element, *element.iterancestors()):
                weights[holder] = weights.get(holder, 0) + weight
                if holder is body:
                    break
    total = weights.get(body, 0)
    region = body
    while total:
        child = max(region, key=lambda each: weights.get(each, 0), default=None)
        if child is None or weights.get(child, 0) < REGION_SHARE * total or child.tag in NEVER_SPLIT:
            break
        region = child
    return region


def _without_furniture(element: html.HtmlElement, *, wanted: str | None) -> html.HtmlElement:
    """Drops navigation and the like. `wanted` is the text that the finder took for the document: it spares what is in it,
    and lists of links that are not in it go too."""
    for child in list(element.iterdescendants(etree.Element)):
        if not any(holder is element for holder in child.iterancestors()):
            continue  # went with an element around it
        if not _is_furniture(child) and (wanted is None or not _is_link_list(child)):
            continue
        text = _squeezed(child.text_content())
        if wanted is not None and len(text) > MIN_SPARED_CHARS and text[:SPARED_CHARS] in wanted:
            continue
        if text and len(text) > len(_squeezed(element.text_content())) // 2:
            continue  # a name like "page-with-sidebar" on the element around everything
        drop(child)
    return element


def _is_furniture(element: html.HtmlElement) -> bool:
    if element.tag in FURNITURE or (element.get("role") or "").lower() in FURNITURE_ROLES:
        return True
    if element.tag in NEVER_FURNITURE:
        return False
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    return bool(names.strip()) and _FURNITURE_NAME.search(names) is not None


def _is_link_list(element: html.HtmlElement) -> bool:
    if element.tag not in ("ul", "ol", "div", "section"):
        return False
    links = element.findall(".//a")
    if len(links) < MIN_LINKS:
        return False
    linked = sum(len(link.text_content()) for link in links)
    return linked > LINK_SHARE * len(" ".join(element.text_content().split()))


def _squeezed(text: str) -> str:
    return "".join(_WORD.findall(text)).lower()
