"""Elements of XML as Markdown."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from lxml import etree, html

from ingestion.extract.base import Limits
from ingestion.extract.tables import markdown_table

Element = etree._Element

TITLES = frozenset({"title", "head", "heading", "headline"})
PARAGRAPHS = frozenset({"p", "para", "simpara", "paragraph"})
# A longer text is prose, whatever its element is called.
PROSE_CHARS = 200
CODE = frozenset({"programlisting", "screen", "codeblock", "literallayout", "code"})
LEFT_OUT = frozenset({"script", "style"})
# Attributes that say how a file is to be read, and nothing to a person.
MECHANICS = frozenset({"schemaLocation", "noNamespaceSchemaLocation", "space", "style", "class", "transform"})
SVG = "{http://www.w3.org/2000/svg}"
MIN_RECORDS = 3
MAX_CELL_CHARS = 1_000
MAX_LEVEL = 6
MAX_INDENT = 8
_TAGS = re.compile(r"</?[A-Za-z][^<>]*>")


class XmlWriter:
    def __init__(self, *, limits: Limits) -> None:
        self._limits = limits
        self._blocks: list[str] = []
        self._documents: set[Element] = set()
        self._chars = 0
        self.title = ""
        self.warnings: list[str] = []

    def write(self, root: Element) -> str:
        self._mark_documents(root)
        self._container(root, level=1)
        return "\n\n".join(self._blocks)

    def _mark_documents(self, root: Element) -> None:
        """All that holds a part of a document somewhere; the rest is names and values."""
        for element in root.iter(etree.Element):
            if _is_prose(element) or _name(element) in TITLES or _look_like_records(_children(element)):
                while element is not None and element not in self._documents:
                    self._documents.add(element)
                    element = element.getparent()

    def _is_block(self, element: Element) -> bool:
        return element in self._documents and _name(element) not in TITLES

    def _add(self, block: str) -> None:
        if block := block.strip("\n"):
            self._blocks.append(block)
            self._chars += len(block)

    @property
    def _full(self) -> bool:
        return self._chars > self._limits.wanted_chars

    def _container(self, element: Element, *, level: int) -> None:
        """A part of a document, or something that holds others."""
        children = _children(element)
        title = next((child for child in children if _name(child) in TITLES and not _children(child)), None)
        if title is not None and (heading := _plain(title)):
            self.title = self.title or heading
            self._add(f"{'#' * min(level, MAX_LEVEL)} {heading}")
            level += 1
        if rows := _records(children, self._limits):
            self._add(markdown_table(rows[: self._limits.max_rows + 1]))
            if len(rows) > self._limits.max_rows + 1:
                self.warnings.append(f"Only the first {self._limits.max_rows:,} of {len(rows) - 1:,} records were kept as text.")
            return
        items: list[str] = []
        if level > 1 and (own := _attributes(element)):
            items.append(f"- {_name(element)}{own}")
        for child in children:
            if self._full:
                break
            if child is title:
                continue
            if self._is_block(child):
                self._flush(items)
                self._block(child, level=level)
            else:
                items += _items(child, depth=0)
        self._flush(items)

    def _block(self, element: Element, *, level: int) -> None:
        name = _name(element)
        if name in CODE:
            self._add("```\n" + "".join(element.itertext()).strip("\n") + "\n```")
        elif _is_prose(element):
            self._add(_plain(element))
        else:
            self._container(element, level=level)

    def _flush(self, items: list[str]) -> None:
        self._add("\n".join(items))
        items.clear()


def _is_prose(element: Element) -> bool:
    if _name(element) in CODE or _name(element) in PARAGRAPHS or _is_mixed(element):
        return True
    return not len(element) and len(element.text or "") > PROSE_CHARS


def _look_like_records(children: Sequence[Element]) -> bool:
    return len(children) >= MIN_RECORDS and len({child.tag for child in children}) == 1 and not any(len(part) for part in children[0])


def _items(element: Element, *, depth: int) -> Iterator[str]:
    indent = "  " * min(depth, MAX_INDENT)
    children = _children(element)
    text = _plain(element) if not children else ""
    own = _attributes(element)
    if text or children or own:
        yield f"{indent}- {_name(element)}{own}{': ' + text if text else ''}"
    for child in children:
        yield from _items(child, depth=depth + 1)


def _records(children: Sequence[Element], limits: Limits) -> list[list[str]]:
    """Header and rows, where all children are of one name and hold plain values only."""
    if len(children) < MIN_RECORDS or len({_name(child) for child in children}) > 1:
        return []
    rows: list[dict[str, str]] = []
    for child in children:
        fields = {_bare(key): value for key, value in child.attrib.items() if _bare(key) not in MECHANICS}
        for part in _children(child):
            if _children(part) or part.attrib or _name(part) in fields:
                return []
            fields[_name(part)] = _plain(part)
        if not _children(child) and (text := _plain(child)):
            fields[_name(child)] = text
        if any(len(value) > MAX_CELL_CHARS for value in fields.values()):
            return []
        rows.append(fields)
    names = list(dict.fromkeys(name for fields in rows for name in fields))
    if not 1 < len(names) <= limits.max_columns:
        return []
    return [names, *([fields.get(name, "") for name in names] for fields in rows)]


def _children(element: Element) -> list[Element]:
    return [child for child in element if isinstance(child.tag, str) and _name(child) not in LEFT_OUT]


def _is_mixed(element: Element) -> bool:
    """Text with elements in it, as a paragraph has them."""
    if not _children(element):
        return False
    return bool((element.text or "").strip()) or any((child.tail or "").strip() for child in element)


def _plain(element: Element) -> str:
    """All text inside, on one line; HTML that stands in it as text, as in feeds, loses its tags."""
    text = " ".join("".join(_texts(element)).split())
    if len(_TAGS.findall(text[:2_000])) > 1:
        with suppress(etree.ParserError, ValueError):
            text = " ".join(html.fromstring(f"<div>{text}</div>").text_content().split())
    return text


def _texts(element: Element) -> Iterator[str]:
    """In order; an entity that nobody expands is written as its name."""
    for part in element.iter():
        if part is not element and not isinstance(part.tag, str):
            yield part.text or ""
        elif isinstance(part.tag, str) and part.text and _name(part) not in LEFT_OUT:
            yield part.text
        if part is not element and part.tail:
            yield part.tail


def _attributes(element: Element) -> str:
    if element.tag.startswith(SVG):
        return ""
    named = ((_bare(key), " ".join(value.split())) for key, value in element.attrib.items())
    kept = [f"{name}: {value}" for name, value in named if value and name not in MECHANICS]
    return f" ({'; '.join(kept)})" if kept else ""


def _name(element: Element) -> str:
    return _bare(element.tag)


def _bare(name: str) -> str:
    return name.rpartition("}")[2]
