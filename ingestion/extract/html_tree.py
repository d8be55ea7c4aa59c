"""An HTML file as one tree, without what a reader of the page would not see."""

import re
from pathlib import Path
from typing import TypeAlias

from lxml import etree

from ingestion.extract.base import MEBIBYTE
from ingestion.extract.encodings import Decoded, decode

Element: TypeAlias = etree._Element

# Markup is many times its text; what lies behind this is left out and the document is marked as cut.
MAX_HTML_BYTES = 5 * MEBIBYTE
CHARSET_BYTES = 4_096
# The parser's own bound; what lies deeper is gone with all that follows it.
TOO_DEEP = "The page is nested more than 2,000 levels deep. What lies deeper, and what comes after it, was left out."

_META_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE)
_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_NONE = r"\s*:\s*-?0*\.?0*(?:px|em|rem|pt|vh|vw|%)?\s*(?:;|!|$)"
# One of these is enough; what stands far outside of the window or is cut to nothing is hidden too.
_HIDING = (
    r"display\s*:\s*none",
    r"(?:content-)?visibility\s*:\s*(?:hidden|collapse)",
    rf"(?:font-size|max-height|max-width){_NONE}",
    r"font-size\s*:\s*1px",
    r"(?:left|right|top|bottom|text-indent|margin-(?:left|top))\s*:\s*-(?:\d{4,}|999|\d{3,}(?:\.\d+)?(?:em|rem|vw|vh|%))",
    r"clip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?",
    r"clip-path\s*:\s*inset\(\s*(?:50|100)%",
    r"transform\s*:\s*(?:scale\(\s*0[\s,)]|translate[XY]?\(\s*-\d{4,})",
)
_HIDING_STYLE = re.compile(rf"(?:^|;)\s*(?:{'|'.join(_HIDING)})", re.IGNORECASE)
_TRANSPARENT = re.compile(r"(?:^|;)\s*opacity\s*:\s*(?:0+(?:\.0\d*|%)?|\.0\d*)\s*(?:;|!|$)", re.IGNORECASE)
_CUT_TO_NOTHING = (
    re.compile(r"(?:^|;)\s*(?:height|width)\s*:\s*[01](?:px)?\s*(?:;|!|$)", re.I),
    re.compile(r"overflow\s*:\s*hidden", re.I),
)
_COLOUR = re.compile(r"(?:^|;)\s*(color|background(?:-color)?)\s*:\s*([^;!]+)", re.IGNORECASE)
_UNSEEN_CLASS = re.compile(r"(?:^|\s)(?:sr-only|visually-?hidden[\w-]*|screen-reader-\w+|show-for-sr|off-?screen)(?:\s|$)", re.IGNORECASE)
_UNSEEN = "script style template noscript iframe object embed applet canvas svg input select textarea button audio video map dialog"
UNSEEN_TAGS = frozenset(_UNSEEN.split())
_STRING = etree.XPath("string()", smart_strings=False)
NEVER_DROPPED = frozenset({"html", "body", "head", "main"})


def read_html(data: Path, *, charset: str = "") -> Decoded:
    """`charset` is what a server said of it, which comes before what the page says of itself."""
    with data.open("rb") as file:
        raw = file.read(MAX_HTML_BYTES)
        cut = bool(file.read(1))
    return decode(raw, cut=cut, declared=(charset, charset_of(raw)))


def charset_of(raw: bytes) -> str:
    """What a page says of itself; "" where it says nothing."""
    match = _META_CHARSET.search(raw[:CHARSET_BYTES])
    return (match[1] or match[2]).decode("ascii", "ignore") if match else ""


def parse_html(text: str, *, warnings: list[str] | None = None) -> Element | None:
    """The whole page, hidden parts included; None when there is no element in it. `warnings` gets `TOO_DEEP` where that is so."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    try:
        tree = etree.fromstring(_XML_DECLARATION.sub("", text).encode("utf-8"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        tree = None
    if warnings is not None and any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        warnings.append(TOO_DEEP)
    return tree


def text_of(element: Element) -> str:
    """All text below, its white space as one space."""
    return " ".join(_STRING(element).split())


def raw_text(element: Element) -> str:
    """All text below as it stands, for code."""
    return _STRING(element)


def drop_hidden(tree: Element) -> None:
    """Hidden text is where instructions to a model are put; it must never reach a passage."""
    for element in list(tree.iter(*UNSEEN_TAGS)):
        drop(element)
    transparent: dict[Element, None] = {}
    for element in list(tree.iter(etree.Element)):
        if not (attributes := element.attrib) or element.tag in NEVER_DROPPED:
            continue
        if _is_hidden(attributes):
            drop(element)
        elif (style := attributes.get("style")) and _TRANSPARENT.search(style):
            transparent[element] = None
    if transparent and not _fades_in(tree, transparent):
        for element in transparent:
            drop(element)


def _fades_in(tree: Element, transparent: dict[Element, None]) -> bool:
    """Where most of a page is transparent, that is how its animations begin: site builders write pages so. A transparent part of
    a page that is seen without it is hidden."""
    outermost = [each for each in transparent if not any(above in transparent for above in each.iterancestors())]
    unseen = sum(len(text_of(each)) for each in outermost if each.getroottree().getroot() is tree)
    body = tree.find("body")
    return 2 * unseen > len(text_of(tree if body is None else body))


def drop(element: Element) -> None:
    """Without its text, but with what follows it."""
    parent, tail = element.getparent(), element.tail
    if parent is None:
        return
    if tail:
        before = element.getprevious()
        if before is None:
            parent.text = (parent.text or "") + tail
        else:
            before.tail = (before.tail or "") + tail
    parent.remove(element)


def _is_hidden(attributes: etree._Attrib) -> bool:
    hidden, names, style = attributes.get("hidden"), attributes.get("class"), attributes.get("style")
    if hidden is not None and hidden != "until-found":
        return True
    if (names and _UNSEEN_CLASS.search(names)) or attributes.get("aria-hidden", "").strip().lower() == "true":
        return True
    return style is not None and _hides(style)


def _hides(style: str) -> bool:
    if _HIDING_STYLE.search(style) or all(pattern.search(style) for pattern in _CUT_TO_NOTHING):
        return True
    colours = {name.lower()[:5]: value.strip().lower() for name, value in _COLOUR.findall(style)}
    return colours.get("color") == "transparent" or ("color" in colours and colours["color"] == colours.get("backg"))
