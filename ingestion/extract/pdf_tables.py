"""Ruled tables of a PDF page as Markdown in their place: pdfplumber makes cells of the rules that pdfium found, the words are pdfium's."""

import re
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pypdfium2 as pdfium

from ingestion.extract.pdf_lines import Box, Line, PageText, upright
from ingestion.extract.pdf_rules import Rule, page_rules
from ingestion.extract.pdf_text import ends_in_hyphen
from ingestion.extract.tables import markdown_table

MIN_RULES = 5
MAX_TABLES = 20
# The finder compares every crossing with every other one.
MAX_CROSSINGS = 1_500
MAX_CELL_CHARS = 1_500
MIN_FILLED = 0.3
MIN_KEPT_WORDS = 0.97
# Tables may take this share of a file's time; after it pages are text.
TIME_SHARE = 0.5
_WORD = re.compile(r"\w+")
_SOLID = re.compile(r"\S+")

Cell = Box | None


class TableReader:
    def __init__(self, *, seconds: float) -> None:
        self._left = TIME_SHARE * seconds

    def with_tables(self, lines: list[Line], page: pdfium.PdfPage, text: PageText) -> list[Line]:
        """The lines, those inside a table replaced by one that holds it as Markdown; unchanged when words would be lost."""
        if len(lines) < 2 or self._left <= 0:
            return lines
        started = time.monotonic()
        turn = Counter(line.turn for line in lines).most_common(1)[0][0]
        rules = page_rules(page, turn=turn)
        if len(rules) >= MIN_RULES:
            for rows in _find([rule for rule in rules if not rule.shade]) or _find(rules):
                lines = _placed(lines, rows, text, turn=turn)
            self._left -= time.monotonic() - started
        return lines


def _find(rules: Sequence[Rule]) -> list[list[list[Cell]]]:
    """Rows of cells of each table, from the top."""
    if len(rules) < MIN_RULES:
        return []
    from pdfplumber.table import Table, cells_to_tables, edges_to_intersections, intersections_to_cells, merge_edges

    edges = merge_edges([_edge(rule) for rule in rules], 3, 3, 3, 3)
    upright_count = sum(edge["orientation"] == "v" for edge in edges)
    if upright_count < 2 or len(edges) - upright_count < 2:
        return []
    crossings = edges_to_intersections(edges, 3, 3)
    if len(crossings) > MAX_CROSSINGS:
        return []
    tables = [Table(None, cells) for cells in cells_to_tables(intersections_to_cells(crossings))]
    found = [[[_box(cell) for cell in row.cells] for row in table.rows] for table in sorted(tables, key=lambda table: table.bbox[1])]
    return [rows for rows in found if len(rows) > 1 and len(rows[0]) > 1][:MAX_TABLES]


def _edge(rule: Rule) -> dict[str, Any]:
    """As pdfplumber has it: `top` counts downwards."""
    left, bottom, right, top = rule.box
    return {
        "orientation": "v" if rule.upright else "h",
        "x0": left,
        "x1": right,
        "top": -top,
        "bottom": -bottom,
        "doctop": -top,
        "width": right - left,
        "height": top - bottom,
    }


def _box(cell: Box | None) -> Cell:
    return None if cell is None else (cell[0], -cell[3], cell[2], -cell[1])


def _placed(lines: list[Line], rows: list[list[Cell]], text: PageText, *, turn: int) -> list[Line]:
    """The lines with those of this table as one; the same lines when that loses words or the frame holds no table."""
    cells = [cell for row in rows for cell in row if cell is not None]
    around = tuple(pick(cell[side] for cell in cells) for side, pick in enumerate((min, min, max, max)))
    inside = [index for index, line in enumerate(lines) if not line.table and line.turn == turn and _is_in(line, around)]
    if not inside:
        return lines
    grid = _Grid(rows)
    for index in inside:
        for piece, words in _by_cell(lines[index], grid, text, turn=turn):
            grid.add(piece, words, broken=lines[index].broken)
    texts = _without_empty(grid.texts)
    if not _is_table(texts):
        return lines
    table = markdown_table(texts)
    if _kept_words([lines[index] for index in inside], table) < MIN_KEPT_WORDS:
        return lines
    whole = replace(lines[inside[0]], text=table, box=around, table=True, broken=False, bold=False, size=0.0)
    dropped = set(inside[1:])
    return [whole if index == inside[0] else line for index, line in enumerate(lines) if index not in dropped]


class _Grid:
    """The texts of a table's cells, and which cell is where."""

    def __init__(self, rows: list[list[Cell]]) -> None:
        self.texts = [[""] * len(row) for row in rows]
        self._rows = rows
        self._tops = [-max(cell[3] for cell in row if cell is not None) for row in rows]
        self._broken: set[tuple[int, int]] = set()

    def at(self, x: float, y: float) -> tuple[int, int] | None:
        """(row, column) of the cell around a point; a cell that spans rows is in its first one."""
        for row in range(bisect_right(self._tops, -y) - 1, -1, -1):
            for column, cell in enumerate(self._rows[row]):
                if cell is not None and cell[0] <= x <= cell[2] and cell[1] <= y <= cell[3]:
                    return row, column
        return None

    def add(self, cell: tuple[int, int], text: str, *, broken: bool) -> None:
        row, column = cell
        before = self.texts[row][column]
        if cell in self._broken:
            joined = before + text
        elif ends_in_hyphen(before) and text[:1].islower():
            joined = before[:-1] + text
        else:
            joined = f"{before} {text}" if before else text
        self.texts[row][column] = joined
        (self._broken.add if broken else self._broken.discard)(cell)


def _by_cell(line: Line, grid: _Grid, text: PageText, *, turn: int) -> Iterator[tuple[tuple[int, int], str]]:
    """The line's words, those of one cell together. A word belongs where it begins, so that none is cut by a rule it runs over."""
    start, where = line.first, None
    chars = "".join(text.char(char) or " " for char in range(line.first, line.end))
    for match in _SOLID.finditer(chars):
        left, bottom, _, top = upright(text.box(line.first + match.start()), turn)
        cell = grid.at(left + 1, (bottom + top) / 2) or where
        if cell != where and where is not None and (part := text.part(line, start, line.first + match.start())) is not None:
            yield where, part.text
        if cell != where:
            start, where = line.first + match.start(), cell
    if where is not None and (part := text.part(line, start, line.end)) is not None:
        yield where, part.text


def _is_in(line: Line, box: Box) -> bool:
    return box[0] - 1 <= (line.box[0] + line.box[2]) / 2 <= box[2] + 1 and box[1] <= line.middle <= box[3]


def _is_table(texts: Sequence[Sequence[str]]) -> bool:
    if not texts or len(texts[0]) < 2:
        return False
    sizes = [len(text) for row in texts for text in row]
    return max(sizes) <= MAX_CELL_CHARS and sum(map(bool, sizes)) >= MIN_FILLED * len(sizes)


def _without_empty(texts: list[list[str]]) -> list[list[str]]:
    """Double rules and gaps between columns come out of the finder as rows and columns of their own."""
    used = [column for column in range(len(texts[0])) if any(row[column] for row in texts)]
    return [[row[column] for column in used] for row in texts if any(row)]


def _kept_words(lines: Sequence[Line], table: str) -> float:
    wanted = Counter(word for line in lines for word in _WORD.findall(line.text))
    return (wanted & Counter(_WORD.findall(table))).total() / wanted.total() if wanted else 1.0
