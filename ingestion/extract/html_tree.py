"""An HTML file as one tree, without what a reader of the page would not see."""

import re
from pathlib import Path

from lxml import etree, html

from ingestion.extract.base import MEBIBYTE
from ingestion.extract.encodings import Decoded, decode

# Markup is many times its text; what lies behind this is left out and the document is marked as cut.
MAX_HTML_BYTES = 5 * MEBIBYTE
CHARSET_BYTES = 4_096

_META_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE)
_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_HIDING_STYLE = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|$)|font-size\s*:\s*0(?:px|em|rem|pt|%)?\s*(?:;|!|$))",
    re.IGNORECASE,
)
_UNSEEN = "script style template noscript iframe object embed applet canvas svg input select textarea button audio video map dialog"
UNSEEN_TAGS = frozenset(_UNSEEN.split())
NEVER_DROPPED = frozenset({"html", "body", "head", "main"})


def read_html(data: Path, *, charset: str = "") -> Decoded:
    """`charset` is what a server said of it, which comes before what the page says of itself."""
    with data.open("rb") as file:
        raw = file.read(MAX_HTML_BYTES)
        cut = bool(file.read(1))
    match = _META_CHARSET.search(raw[:CHARSET_BYTES])
    own = (match[1] or match[2]).decode("ascii", "ignore") if match else ""
    return decode(raw, cut=cut, declared=(charset, own))


def parse_html(text: str) -> html.HtmlElement | None:
    """The whole page, hidden parts included; None when there is no element in it."""
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=False)
    try:
        return html.document_fromstring(_XML_DECLARATION.sub("", text).encode("utf-8"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None


def drop_hidden(tree: html.HtmlElement) -> None:
    """Hidden text is where instructions to a model are put; it must never reach a passage."""
    for element in list(tree.iter(etree.Element)):
        if element.tag not in NEVER_DROPPED and element.getparent() is not None and _is_hidden(element):
            drop(element)


def drop(element: html.HtmlElement) -> None:
    """Without its text, but with what follows it."""
    if element.getparent() is not None:
        element.drop_tree()


def _is_hidden(element: html.HtmlElement) -> bool:
    if element.tag in UNSEEN_TAGS:
        # Structured data about the page is metadata, and readers of metadata want it.
        return not (element.tag == "script" and element.get("type") == "application/ld+json")
    if "hidden" in element.attrib and element.get("hidden") != "until-found":
        return True
    if element.get("aria-hidden", "").strip().lower() == "true":
        return True
    style = element.get("style")
    return style is not None and _HIDING_STYLE.search(style) is not None
