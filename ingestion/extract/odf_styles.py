"""Styles of OpenDocument files: emphasis, hidden text, titles, and how lists and headings are numbered."""

from dataclasses import dataclass, replace

from ingestion.extract.blocks import BULLET
from ingestion.extract.docx_styles import number_of
from ingestion.extract.numerals import formatted
from ingestion.extract.xml_tree import Element

_BASE = "{urn:oasis:names:tc:opendocument:xmlns:"
OFFICE = f"{_BASE}office:1.0}}"
STYLE = f"{_BASE}style:1.0}}"
TEXT = f"{_BASE}text:1.0}}"
TABLE = f"{_BASE}table:1.0}}"
DRAW = f"{_BASE}drawing:1.0}}"
PRESENTATION = f"{_BASE}presentation:1.0}}"
SVG = f"{_BASE}svg-compatible:1.0}}"
FO = f"{_BASE}xsl-fo-compatible:1.0}}"
XLINK = "{http://www.w3.org/1999/xlink}"
MAX_INHERITANCE = 20
MAX_DEPTH = 10
_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}


@dataclass(frozen=True, slots=True)
class Style:
    """None where it says nothing itself."""

    parent: str = ""
    display: str = ""
    bold: bool | None = None
    italic: bool | None = None
    hidden: bool | None = None


@dataclass(frozen=True, slots=True)
class ListLevel:
    format: str = ""
    prefix: str = ""
    suffix: str = ""
    start: int = 1
    shown: int = 1
    """How many levels its numbers have: 2 for "1.2"."""


class Styles:
    def __init__(self) -> None:
        self._styles: dict[tuple[str, str], Style] = {}
        self._lists: dict[str, dict[int, ListLevel]] = {}
        self.outline: dict[int, ListLevel] = {}

    def add(self, root: Element) -> None:
        """All below: styles stand in the document and, those of its template, in a part of their own."""
        for element in root.iter(f"{STYLE}style"):
            self._styles[element.get(f"{STYLE}family", ""), element.get(f"{STYLE}name", "")] = _style(element)
        for element in root.iter(f"{TEXT}list-style"):
            self._lists[element.get(f"{STYLE}name", "")] = _levels(element)
        for element in root.iter(f"{TEXT}outline-style"):
            self.outline = _levels(element)

    def text(self, name: str, family: str = "text") -> Style:
        """Of a span, with what it inherits."""
        found = Style()
        for style in self._inheritance(name, family):
            found = replace(
                found,
                bold=style.bold if found.bold is None else found.bold,
                italic=style.italic if found.italic is None else found.italic,
                hidden=style.hidden if found.hidden is None else found.hidden,
            )
        return found

    def is_titled(self, name: str, title: str) -> bool:
        """Whether a paragraph's style is this one of the program's own, or made from it."""
        key, steps = name, 0
        while key and steps < MAX_INHERITANCE:
            style = self._styles.get(("paragraph", key), Style())
            if title in (key, style.display):
                return True
            key, steps = style.parent, steps + 1
        return False

    def levels(self, name: str) -> dict[int, ListLevel]:
        return self._lists.get(name, {})

    def _inheritance(self, name: str, family: str) -> list[Style]:
        line: list[Style] = []
        while (style := self._styles.get((family, name))) is not None and len(line) < MAX_INHERITANCE:
            line.append(style)
            name = style.parent
        return line


def numbered(values: dict[int, int], depth: int, levels: dict[int, ListLevel]) -> str:
    """What stands before an item at this depth (from 0), when `values` are the numbers above and at it."""
    level = levels.get(depth, ListLevel())
    if not level.format:
        return BULLET
    first = max(0, depth - level.shown + 1)
    numbers = [
        formatted(values[at], _FORMATS.get(levels.get(at, level).format, "decimal")) for at in range(first, depth + 1) if at in values
    ]
    return level.prefix + ".".join(numbers) + level.suffix


def _style(element: Element) -> Style:
    properties = element.find(f"{STYLE}text-properties")
    style = Style(parent=element.get(f"{STYLE}parent-style-name", ""), display=element.get(f"{STYLE}display-name", ""))
    if properties is None:
        return style
    weight, slant = properties.get(f"{FO}font-weight"), properties.get(f"{FO}font-style")
    return replace(
        style,
        bold=None if weight is None else weight == "bold" or (weight.isdecimal() and int(weight) >= 600),
        italic=None if slant is None else slant in ("italic", "oblique"),
        hidden=None if (shown := properties.get(f"{TEXT}display")) is None else shown == "none",
    )


def _levels(element: Element) -> dict[int, ListLevel]:
    found: dict[int, ListLevel] = {}
    for child in element:
        if not isinstance(child.tag, str) or (depth := number_of(child.get(f"{TEXT}level"))) is None:
            continue
        if child.tag in (f"{TEXT}list-level-style-number", f"{TEXT}outline-level-style"):
            found[depth - 1] = ListLevel(
                format=child.get(f"{STYLE}num-format", ""),
                prefix=child.get(f"{STYLE}num-prefix", ""),
                suffix=child.get(f"{STYLE}num-suffix", ""),
                start=number_of(child.get(f"{TEXT}start-value")) or 1,
                shown=min(max(1, number_of(child.get(f"{TEXT}display-levels")) or 1), MAX_DEPTH),
            )
    return found
