"""XML of a stranger: no entity is resolved, nothing is fetched, and depth and size have the parser's own bounds."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeAlias

from lxml import etree

from config.errors import ExtractionError

Element: TypeAlias = etree._Element
_SAFE: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}


def parse_xml(data: bytes, *, name: str) -> Element:
    """Raises ExtractionError, content at fault, for what is no XML."""
    try:
        return etree.fromstring(data, parser=etree.XMLParser(**_SAFE))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise broken_xml(name, error) from error


def iter_children(pieces: Iterable[bytes], *, tags: Iterable[str], of: Collection[str], name: str) -> Iterator[Element]:
    """Elements of these tags that stand right below one of `of`, each forgotten after its turn: a large part needs no large tree."""
    parser = etree.XMLPullParser(events=("end",), tag=tuple(tags), **_SAFE)
    try:
        for piece in pieces:
            parser.feed(piece)
            yield from _finished(parser, of)
        parser.close()
        yield from _finished(parser, of)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise broken_xml(name, error) from error


def _finished(parser: etree.XMLPullParser, of: Collection[str]) -> Iterator[Element]:
    for _, element in parser.read_events():
        parent = element.getparent()
        if parent is None or parent.tag not in of:
            continue
        yield element
        element.clear()
        while element.getprevious() is not None:
            del parent[0]


def own_text(element: Element) -> str:
    """Of an element that holds text only. What would have come from an entity is not there, what stands around it is."""
    return (element.text or "") + "".join(child.tail or "" for child in element) if len(element) else element.text or ""


def text_content(element: Element) -> str:
    """All text below, however deep."""
    return "".join(element.itertext())


def broken_xml(name: str, error: Exception) -> ExtractionError:
    words = str(error)
    if "depth" in words.lower():
        happened, reason = f"{name} is nested too deeply to be read.", "damaged"
        return ExtractionError(happened, advice="Save it again in a simpler form.", reason=reason, retires=True)
    advice = "Save it again in the program it comes from."
    return ExtractionError(f"{name} is damaged: its XML ends early or is no XML.", advice=advice, reason="damaged", retires=True)
