"""Paragraphs, lists, tables and frames of OpenDocument files as blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ingestion.extract.blocks import CellWriter, Writer, comment_line
from ingestion.extract.docx_styles import number_of
from ingestion.extract.grid import MAX_COLUMNS, MAX_ROWS, Cell, spread
from ingestion.extract.inline import inline_markdown
from ingestion.extract.odf_inline import InlineReader
from ingestion.extract.odf_styles import DRAW, OFFICE, SVG, TABLE, TEXT, ListLevel, Styles, numbered
from ingestion.extract.xml_tree import Element, text_content

MAX_DEPTH = 40
LONG_CELL_CHARS = 1_500
DC = "{http://purl.org/dc/elements/1.1/}"
# What is made from the rest of the text: contents and lists of figures repeat it.
_MADE_NAMES = ("table-of-content", "illustration-index", "table-index", "object-index", "alphabetical-index", "tracked-changes")
MADE = frozenset(TEXT + name for name in _MADE_NAMES)
_ROWS = frozenset(f"{TABLE}{name}" for name in ("table-header-rows", "table-row-group", "table-rows"))


@dataclass(slots=True)
class _List:
    style: str
    levels: dict[int, ListLevel]
    values: dict[int, int] = field(default_factory=dict)


class BodyReader:
    def __init__(self, styles: Styles, *, comments: bool) -> None:
        self._styles = styles
        self.inline = InlineReader(styles)
        self._wants_comments = comments
        self._outline: dict[int, int] = {}
        self._last_lists: dict[str, _List] = {}
        self._lowered = 0
        self.title = ""
        self.first_heading = ""

    def blocks(self, element: Element, out: Writer, depth: int = 0) -> None:
        for child in element:
            if out.full:
                return
            if isinstance(child.tag, str):
                self.block(child, out, depth)

    def block(self, element: Element, out: Writer, depth: int = 0) -> None:
        tag = element.tag
        if depth > MAX_DEPTH:
            out.paragraph(" ".join(text_content(element).split()))
        elif tag in MADE or element.get(f"{TEXT}display") == "none":
            return
        elif tag in (f"{TEXT}p", f"{TEXT}h"):
            self._paragraph(element, out, depth)
        elif tag == f"{TEXT}list":
            self._list(element, out, depth)
        elif tag == f"{TABLE}table":
            self._table(element, out, depth)
        elif tag.startswith(DRAW):
            self.drawing(element, out, depth)
        elif tag.startswith((TEXT, OFFICE)):
            self.blocks(element, out, depth + 1)

    def drawing(self, element: Element, out: Writer, depth: int = 0) -> None:
        """A frame or shape: its text boxes, tables and parts of a group. The picture of an object stands in for it and is none."""
        for child in element:
            if not isinstance(child.tag, str) or child.tag in (f"{SVG}desc", f"{SVG}title"):
                continue
            if child.tag.startswith(DRAW):
                if depth < MAX_DEPTH:
                    self.drawing(child, out, depth + 1)
            else:
                self.block(child, out, depth + 1)

    def _paragraph(self, element: Element, out: Writer, depth: int, *, label: str = "", item_depth: int = 0) -> None:
        line = self.inline.read(element)
        is_heading = element.tag == f"{TEXT}h"
        name = element.get(f"{TEXT}style-name", "")
        is_title = not label and self._styles.is_titled(name, "Title")
        text = inline_markdown(line.runs, plain=is_heading or is_title)
        if not text:
            pass
        elif is_title:
            self.title, self._lowered = self.title or text, 1
            out.heading(text, level=1)
        elif is_heading:
            level = number_of(element.get(f"{TEXT}outline-level")) or 1
            number = self._heading_number(element, level)
            self.first_heading = self.first_heading or text
            out.heading(f"{number} {text}" if number else text, level=level + self._lowered)
        elif label:
            out.item(text, depth=item_depth, label=label)
        else:
            out.paragraph(text)
        for frame in line.beside:
            self.drawing(frame, out, depth + 1)
        for comment in line.comments if self._wants_comments else ():
            if words := as_line(self, comment):
                out.paragraph(comment_line(comment.findtext(f"{DC}creator") or "", comment.findtext(f"{DC}date") or "", words))

    def _heading_number(self, element: Element, level: int) -> str:
        """Headings count by their levels where the document numbers them."""
        depth = level - 1
        shape = self._styles.outline.get(depth)
        if shape is None or not shape.format or element.get(f"{TEXT}is-list-header") == "true":
            return ""
        self._outline[depth] = self._outline[depth] + 1 if depth in self._outline else shape.start
        for below in [each for each in self._outline if each > depth]:
            del self._outline[below]
        return numbered(self._outline, depth, self._styles.outline)

    def _list(self, element: Element, out: Writer, depth: int, *, of: _List | None = None, level: int = 0) -> None:
        style = element.get(f"{TEXT}style-name", "")
        if of is None:
            of = _List(style, self._styles.levels(style))
            before = self._last_lists.get(style)
            if before is not None and (element.get(f"{TEXT}continue-numbering") == "true" or element.get(f"{TEXT}continue-list")):
                of.values = before.values
            self._last_lists[style] = of
        for below in [each for each in of.values if each > level or (each == level and level > 0)]:
            del of.values[below]
        for item in element:
            if item.tag == f"{TEXT}list-item":
                self._item(item, out, depth, of=of, level=level)
            elif item.tag == f"{TEXT}list-header":
                self.blocks(item, out, depth + 1)

    def _item(self, item: Element, out: Writer, depth: int, *, of: _List, level: int) -> None:
        if depth > MAX_DEPTH:
            out.paragraph(" ".join(text_content(item).split()))
            return
        label = ""
        if any(child.tag in (f"{TEXT}p", f"{TEXT}h") for child in item):
            start = number_of(item.get(f"{TEXT}start-value"))
            following = of.values[level] + 1 if level in of.values else of.levels.get(level, ListLevel()).start
            of.values[level] = following if start is None else start
            label = numbered(of.values, level, of.levels)
        for child in item:
            if child.tag == f"{TEXT}list":
                self._list(child, out, depth + 1, of=of, level=level + 1)
            elif child.tag == f"{TEXT}p":
                self._paragraph(child, out, depth + 1, label=label, item_depth=level)
                label = ""  # what follows in the item is a paragraph of its own
            elif isinstance(child.tag, str):
                self.block(child, out, depth + 1)

    def _table(self, table: Element, out: Writer, depth: int) -> None:
        cells = [[cell for cell in row if isinstance(cell.tag, str)] for row in list(_rows(table, 0))[:MAX_ROWS]]
        is_long = any(len(text_content(cell)) > LONG_CELL_CHARS for row in cells for cell in row)
        if (is_long or max((len(row) for row in cells), default=0) < 2) and not isinstance(out, CellWriter):
            for row in cells:
                for cell in row:
                    self.blocks(cell, out, depth + 1)
            return
        out.table(spread([self._row(row, depth) for row in cells]))

    def _row(self, cells: list[Element], depth: int) -> list[Cell]:
        line: list[Cell] = []
        for cell in cells:
            if cell.tag != f"{TABLE}table-cell" or len(line) >= MAX_COLUMNS:
                continue  # covered by another cell, which says so itself
            text = as_line(self, cell, depth + 1)
            columns = number_of(cell.get(f"{TABLE}number-columns-spanned")) or 1
            rows = number_of(cell.get(f"{TABLE}number-rows-spanned")) or 1
            repeated = min(number_of(cell.get(f"{TABLE}number-columns-repeated")) or 1, MAX_COLUMNS)
            line += [Cell(text, columns=min(columns, MAX_COLUMNS), rows=min(rows, MAX_ROWS))] * repeated
        return line


def as_line(reader: BodyReader, element: Element, depth: int = 0) -> str:
    out = CellWriter()
    reader.blocks(element, out, depth)
    return out.text


def _rows(table: Element, depth: int) -> Iterator[Element]:
    for child in table:
        if child.tag == f"{TABLE}table-row":
            yield child
        elif child.tag in _ROWS and depth < MAX_DEPTH:
            yield from _rows(child, depth + 1)
