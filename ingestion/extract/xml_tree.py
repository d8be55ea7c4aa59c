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
    pieces = iter(pieces)
    parser = etree.XMLPullParser(events=("end",), tag=tuple(tags), **_SAFE)
    try:
        for piece in pieces:
            parser.feed(piece)
            yield from _finished(parser, of)
        parser.close()
        yield from _finished(parser, of)
    except (etree.XMLSyntaxError, ValueError) as error:
        if _is_too_long(error):
            for _ in pieces:  # a container that unpacks to more than is allowed says so itself
                pass
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
    words = str(error).lower()
    if _is_too_long(error):
        happened = f"{name} holds a single piece of text of more than ten million characters."
        return ExtractionError(happened, advice="Split it into paragraphs.", reason="too_large", retires=True)
    if "entity" in words:
        return own_entities(name)
    if "depth" in words:
        happened, reason = f"{name} is nested too deeply to be read.", "damaged"
        return ExtractionError(happened, advice="Save it again in a simpler form.", reason=reason, retires=True)
    advice = "Save it again in the program it comes from."
    return ExtractionError(f"{name} is damaged: its XML ends early or is no XML.", advice=advice, reason="damaged", retires=True)


def own_entities(name: str) -> ExtractionError:
    happened = f"{name} defines entities of its own, as no program that writes such files does."
    return ExtractionError(happened, advice="Save it again in the program it comes from.", reason="damaged", retires=True)


def _is_too_long(error: Exception) -> bool:
    """Of one text, comment or name: where the parser stops, whatever follows."""
    words = str(error).lower()
    return " too long" in words or " too big" in words
