"""Ruled tables of a PDF page: found by pdfplumber where pdfium sees rules, read by pdfium, written as Markdown in their place."""

import re
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from ingestion.extract.pdf_text import clean_lines, join_lines
from ingestion.extract.tables import markdown_table

# Fewer rules make no table; more are a drawing or a map, where looking for one costs minutes.
MIN_RULES, MAX_RULES = 6, 2_000
MAX_TABLES = 20
MAX_CELLS = 4_000
MIN_CELL_WIDTH = 5
MIN_FILLED = 0.3
MIN_KEPT_WORDS = 0.97
_WORD = re.compile(r"\w+")

Box = tuple[float, float, float, float]


class TableReader:
    """Opens the file for pdfplumber only when a page has rules. A page that makes it fail has no tables; its text is not lost."""

    def __init__(self, data: Path, *, deadline: float) -> None:
        self._data = data
        self._deadline = deadline
        self._plumber: Any = None
        self._broken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._plumber is not None:
            self._plumber.close()

    def page_markdown(self, page: pdfium.PdfPage, textpage: pdfium.PdfTextPage, index: int, *, plain: str) -> str | None:
        """The whole page with its tables as Markdown; None when it has none or when words would be lost."""
        if self._broken or time.monotonic() > self._deadline or not _is_ruled(page):
            return None
        boxes = self._find(index)
        if not boxes:
            return None
        markdown = _assemble(page, textpage, boxes)
        return markdown if markdown and _kept_words(plain, markdown) >= MIN_KEPT_WORDS else None

    def _find(self, index: int) -> list[tuple[Box, list[list[Box | None]]]]:
        """(box, rows of cell boxes) of each table, from the top, in pdfplumber's coordinates."""
        try:
            if self._plumber is None:
                import pdfplumber

                self._plumber = pdfplumber.open(self._data)
            page = self._plumber.pages[index]
            found = [(table.bbox, [list(row.cells) for row in table.rows]) for table in page.find_tables()[:MAX_TABLES]]
            page.close()
        except MemoryError:
            raise
        except Exception:
            # pdfminer raises anything at all on odd files; pdfium read the text already.
            self._broken = True
            return []
        tables = [(box, rows) for box, rows in found if len(rows) > 1 and max(map(len, rows)) > 1 and sum(map(len, rows)) <= MAX_CELLS]
        return sorted(tables, key=lambda table: table[0][1])


def _is_ruled(page: pdfium.PdfPage) -> bool:
    if page.get_rotation() or page.get_mediabox()[:2] != (0, 0) or page.get_cropbox() != page.get_mediabox():
        return False  # the two readers would disagree about where things are
    count = 0
    for _ in page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=2):
        count += 1
        if count > MAX_RULES:
            return False
    return count >= MIN_RULES


def _assemble(page: pdfium.PdfPage, textpage: pdfium.PdfTextPage, tables: list[tuple[Box, list[list[Box | None]]]]) -> str | None:
    width, height = page.get_size()
    blocks: list[str] = []
    top = 0.0
    for (left, upper, right, lower), rows in tables:
        if upper < top - 1:
            continue  # beside or inside the table before; its words are counted as lost if they matter
        blocks.append(_prose(textpage, height, (0, top, width, upper)))
        blocks.append(_prose(textpage, height, (0, upper, left, lower)))
        cells = [[_cell(textpage, height, cell) for cell in row] for row in rows]
        cells = _without_empty_columns(cells)
        if sum(bool(cell) for row in cells for cell in row) < MIN_FILLED * sum(map(len, cells)):
            blocks.append(_prose(textpage, height, (left, upper, right, lower)))
        else:
            blocks.append(markdown_table(cells))
        blocks.append(_prose(textpage, height, (right, upper, width, lower)))
        top = lower
    blocks.append(_prose(textpage, height, (0, top, width, height)))
    return "\n\n".join(block for block in blocks if block)


def _text(textpage: pdfium.PdfTextPage, height: float, box: Box) -> str:
    left, upper, right, lower = box
    if right - left < 1 or lower - upper < 1:
        return ""
    return textpage.get_text_bounded(left=left, bottom=height - lower, right=right, top=height - upper)


def _prose(textpage: pdfium.PdfTextPage, height: float, box: Box) -> str:
    return join_lines(clean_lines(_text(textpage, height, box)))


def _cell(textpage: pdfium.PdfTextPage, height: float, box: Box | None) -> str:
    if box is None or box[2] - box[0] < MIN_CELL_WIDTH:
        return ""  # between double rules lies the edge of the neighbour's first letter
    return " ".join(line for line in clean_lines(_text(textpage, height, box)) if line)


def _without_empty_columns(cells: list[list[str]]) -> list[list[str]]:
    """Double rules and gaps between columns come out of the finder as columns of their own."""
    width = max(map(len, cells))
    padded = [row + [""] * (width - len(row)) for row in cells]
    used = [column for column in range(width) if any(row[column] for row in padded)]
    return [[row[column] for column in used] for row in padded]


def _kept_words(plain: str, markdown: str) -> float:
    wanted = Counter(_WORD.findall(" ".join(clean_lines(plain))))
    total = wanted.total()
    return (wanted & Counter(_WORD.findall(markdown))).total() / total if total else 1.0
