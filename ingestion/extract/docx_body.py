"""Paragraphs, lists and tables of a Word part as blocks."""

from collections.abc import Mapping

from ingestion.extract.blocks import CellWriter, Writer
from ingestion.extract.docx_inline import MAX_DEPTH, InlineReader, Line, chosen
from ingestion.extract.docx_numbering import Numbering
from ingestion.extract.docx_styles import BODY_LEVEL, Look, Styles, W, number_of, value_of
from ingestion.extract.drawings import DrawingReader
from ingestion.extract.grid import MAX_COLUMNS, MAX_ROWS, Cell, spread
from ingestion.extract.inline import Run, inline_markdown
from ingestion.extract.xml_tree import Element, text_content

# A cell with more text than this is a part of the page, not a value.
LONG_CELL_CHARS = 1_500
BLOCK_TAGS = tuple(f"{W}{name}" for name in ("p", "tbl", "sdt", "customXml", "ins", "moveTo", "altChunk"))
_HOLDERS = frozenset(f"{W}{name}" for name in ("sdtContent", "customXml", "ins", "moveTo", "smartTag"))


class BodyReader:
    """One for each part. `comments` maps the id of a comment to what is written of it; empty when comments are not wanted."""

    def __init__(
        self, inline: InlineReader, *, styles: Styles, numbering: Numbering, drawings: DrawingReader, comments: Mapping[str, str]
    ) -> None:
        self._inline = inline
        self._styles = styles
        self._numbering = numbering
        self._drawings = drawings
        self._comments = comments
        self._carried: list[Run] = []
        self._lowered = 0
        self.title = ""
        self.first_heading = ""
        self.has_chunks = False

    def block(self, element: Element, out: Writer, depth: int = 0) -> None:
        """One block with all that is in it."""
        if depth > MAX_DEPTH:
            out.paragraph(" ".join(text_content(element).split()))
            return
        tag = element.tag
        if tag == f"{W}p":
            self._paragraph(element, out, depth)
        elif tag == f"{W}tbl":
            self._table(element, out, depth)
        elif tag == f"{W}sdt":
            self._control(element, out, depth)
        elif tag in _HOLDERS:
            self.blocks(element, out, depth + 1)
        elif tag == f"{W}altChunk":
            self.has_chunks = True

    def blocks(self, element: Element, out: Writer, depth: int) -> None:
        for child in chosen(element):
            if out.full:
                return
            self.block(child, out, depth)

    def _control(self, element: Element, out: Writer, depth: int) -> None:
        gallery = value_of(element, f"{W}sdtPr/{W}docPartObj/{W}docPartGallery")
        content = element.find(f"{W}sdtContent")
        if gallery != "Table of Contents" and content is not None:
            self.blocks(content, out, depth + 1)

    def _paragraph(self, element: Element, out: Writer, depth: int) -> None:
        was_contents = self._inline.in_contents
        properties = element.find(f"{W}pPr")
        line = self._inline.read(element, in_cell=isinstance(out, CellWriter))
        look = self._look(properties)
        line.runs, self._carried = [*self._carried, *line.runs], []
        if properties is not None and properties.find(f"{W}rPr/{W}del") is not None:
            self._carried = line.runs  # its end is deleted: it goes on in the next paragraph
        elif not (look.is_contents or was_contents or self._inline.in_contents):
            self._write(line, look, out)
        for beside in line.beside:
            self._beside(beside, out, depth)
        for identifier in line.comments:
            if text := self._comments.get(identifier):
                out.paragraph(text)

    def _write(self, line: Line, look: Look, out: Writer) -> None:
        label = ""
        if look.num_id is not None and look.num_id in self._numbering:
            label = self._numbering.label(look.num_id, look.depth)
        text = inline_markdown(line.runs, plain=bool(look.level or look.is_title))
        if not text:
            return
        if look.is_title:
            self._lowered = 1  # what follows stands below the document's title
            self.title = self.title or text
            out.heading(text, level=1)
        elif look.level:
            self.first_heading = self.first_heading or text
            out.heading(f"{label} {text}" if label not in ("", "-") else text, level=look.level + self._lowered)
        elif label:
            out.item(text, depth=look.depth, label=label)
        else:
            out.paragraph(text)

    def _look(self, properties: Element | None) -> Look:
        """What the style says, and over it what the paragraph says itself."""
        look = self._styles.look(value_of(properties, f"{W}pStyle"))
        level = number_of(value_of(properties, f"{W}outlineLvl"))
        num_id = value_of(properties, f"{W}numPr/{W}numId")
        depth = number_of(value_of(properties, f"{W}numPr/{W}ilvl"))
        if level is None and num_id is None and depth is None:
            return look
        return Look(
            level=look.level if level is None else level + 1 if 0 <= level < BODY_LEVEL else 0,
            is_title=look.is_title,
            is_contents=look.is_contents,
            num_id=look.num_id if num_id is None else num_id,
            depth=look.depth if depth is None else depth,
        )

    def _beside(self, element: Element, out: Writer, depth: int) -> None:
        if element.tag == f"{W}txbxContent":
            self.blocks(element, out, depth + 1)
        else:
            self._drawings.write(element, out)

    def _table(self, table: Element, out: Writer, depth: int) -> None:
        rows = [row for row in _children(table, f"{W}tr") if row.find(f"{W}trPr/{W}del") is None][:MAX_ROWS]
        cells = [_children(row, f"{W}tc") for row in rows]
        if isinstance(out, CellWriter) or not _is_layout(cells):
            out.table(spread(self._rows(rows, cells, depth)))
            return
        for row in cells:
            for cell in row:
                if _merge(cell) != "continue":
                    self.blocks(cell, out, depth + 1)

    def _rows(self, rows: list[Element], cells: list[list[Element]], depth: int) -> list[list[Cell]]:
        """Word repeats a cell that is merged downwards in each row, empty and marked; here it is one cell over its rows."""
        found: list[list[Cell]] = []
        open_cells: dict[int, tuple[int, int]] = {}  # column -> (row, position) of the cell that may go on below
        for row, row_cells in zip(rows, cells, strict=True):
            column = number_of(value_of(row, f"{W}trPr/{W}gridBefore")) or 0
            line = [Cell("")] * min(column, MAX_COLUMNS)
            for cell in row_cells[:MAX_COLUMNS]:
                width = min(max(1, number_of(value_of(cell, f"{W}tcPr/{W}gridSpan")) or 1), MAX_COLUMNS)
                merge = _merge(cell)
                if merge == "continue" and column in open_cells:
                    above, position = open_cells[column]
                    old = found[above][position]
                    found[above][position] = Cell(old.text, old.columns, len(found) - above + 1)
                else:
                    open_cells.pop(column, None)
                    if merge is not None:
                        open_cells[column] = (len(found), len(line))
                    line.append(Cell(self._cell_text(cell, depth), columns=width))
                column += width
            found.append(line)
        return found

    def _cell_text(self, cell: Element, depth: int) -> str:
        out = CellWriter()
        self.blocks(cell, out, depth + 1)
        return out.text


def _children(element: Element, tag: str, depth: int = 0) -> list[Element]:
    """Rows or cells, also those inside of content controls and marked insertions."""
    found: list[Element] = []
    for child in chosen(element):
        if child.tag == tag:
            if child.find(f"{W}tcPr/{W}cellDel") is None:
                found.append(child)
        elif depth < MAX_DEPTH and (child.tag == f"{W}sdt" or child.tag in _HOLDERS):
            found += _children(child, tag, depth + 1)
    return found


def _merge(cell: Element) -> str | None:
    """`restart` begins a cell over several rows, `continue` belongs to the one above."""
    merge = cell.find(f"{W}tcPr/{W}vMerge")
    return None if merge is None else merge.get(f"{W}val", "continue")


def _is_layout(cells: list[list[Element]]) -> bool:
    """A box around text, or columns of a page: no values in rows."""
    if max((len(row) for row in cells), default=0) < 2:
        return True
    return any(len(text_content(cell)) > LONG_CELL_CHARS for row in cells for cell in row)
