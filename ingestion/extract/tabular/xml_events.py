"""XML of a stranger as events, in bounded memory: no tree, no document type, no entities but the five of XML.

expat and not lxml: the cells of a sheet take half of the time, and what is read of a part is forgotten at once."""

from collections.abc import Callable, Generator, Iterator
from xml.parsers import expat

from ingestion.extract.archive import damaged
from ingestion.extract.xml_tree import own_entities


class Handlers:
    """What a part of a file does with its elements; names come without their prefix."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


def read_part(pieces: Generator[bytes, None, None], handlers: Handlers, *, name: str) -> None:
    for _ in read_pieces(pieces, handlers, name=name):
        pass


def read_pieces(pieces: Generator[bytes, None, None], handlers: Handlers, *, name: str) -> Iterator[None]:
    """Yields after each piece, so that what the handlers have gathered can be taken. Raises ExtractionError, content at fault."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = _bare_start(handlers.start)
    parser.EndElementHandler = _bare_end(handlers.end)
    parser.CharacterDataHandler = handlers.text
    parser.StartDoctypeDeclHandler = _refuse_doctype(name)
    try:
        for piece in pieces:
            parser.Parse(piece, False)
            yield
        parser.Parse(b"", True)
        yield
    except expat.ExpatError as error:
        raise damaged(name) from error
    finally:
        pieces.close()


def attribute(attributes: dict[str, str], name: str, default: str = "") -> str:
    """Of whatever prefix, as `r:id` and `d3p1:id` are the same."""
    if name in attributes:
        return attributes[name]
    return next((value for key, value in attributes.items() if key.rpartition(":")[2] == name), default)


def _bare_start(handler: Callable[[str, dict[str, str]], None]) -> Callable[[str, dict[str, str]], None]:
    return lambda name, attributes: handler(name.rpartition(":")[2] if ":" in name else name, attributes)


def _bare_end(handler: Callable[[str], None]) -> Callable[[str], None]:
    return lambda name: handler(name.rpartition(":")[2] if ":" in name else name)


def _refuse_doctype(name: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise own_entities(name)

    return refuse
