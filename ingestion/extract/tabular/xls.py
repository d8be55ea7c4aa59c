"""Excel workbooks from before 2007 (.xls), by xlrd: it reads the formats of cells, and rows of any length. calamine knows no formats, and
asks for memory for every cell between the first and the last."""

import datetime as dt
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xlrd
from xlrd.book import Book
from xlrd.sheet import Sheet as XlrdSheet

from config.errors import ExtractionError
from ingestion.extract.archive import damaged, needs_password
from ingestion.extract.base import Limits
from ingestion.extract.tabular.base import Merge, RawSheet
from ingestion.extract.tabular.number_formats import NumberFormat, number_format


class XlsReader:
    media_type = "application/vnd.ms-excel"

    def sheets(self, path: Path, *, name: str, limits: Limits, shown: bool) -> Iterator[RawSheet]:
        with _as_damage(name):
            book = xlrd.open_workbook(str(path), logfile=io.StringIO(), on_demand=True, formatting_info=True, ragged_rows=True)
        try:
            for number in range(book.nsheets):
                with _as_damage(name):
                    sheet = book.sheet_by_index(number)
                merges = [Merge(top, left, bottom - 1, right - 1) for top, bottom, left, right in sheet.merged_cells]
                rows = _rows(book, sheet, name=name, shown=shown)
                yield RawSheet(name=sheet.name, rows=rows, hidden=sheet.visibility != 0, merges=merges)
                book.unload_sheet(number)
        finally:
            book.release_resources()


def _rows(book: Book, sheet: XlrdSheet, *, name: str, shown: bool) -> Iterator[tuple[int, list[Any]]]:
    empty = "" if shown else None
    formats: dict[int, NumberFormat] = {}
    for number in range(sheet.nrows):
        with _as_damage(name):
            kinds, values = sheet.row_types(number), sheet.row_values(number)
            cells = []
            for at, (kind, value) in enumerate(zip(kinds, values, strict=True)):
                if kind in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
                    style = sheet.cell_xf_index(number, at)
                    form = formats.get(style) or formats.setdefault(style, _format(book, style))
                    cells.append(_number(value, form, from_1904=book.datemode == 1, shown=shown))
                elif kind == xlrd.XL_CELL_TEXT:
                    cells.append(value or empty)
                elif kind == xlrd.XL_CELL_BOOLEAN:
                    cells.append(("TRUE" if value else "FALSE") if shown else bool(value))
                elif kind == xlrd.XL_CELL_ERROR and shown:
                    cells.append(xlrd.error_text_from_code.get(value, "#ERROR!"))
                else:
                    cells.append(empty)
        while cells and cells[-1] == empty:
            cells.pop()
        if cells:
            yield number, cells


def _format(book: Book, style: int) -> NumberFormat:
    form = book.format_map.get(book.xf_list[style].format_key) if style < len(book.xf_list) else None
    return number_format(form.format_str if form is not None else "General")


def _number(value: float, form: NumberFormat, *, from_1904: bool, shown: bool) -> str | int | float | dt.date | dt.time | dt.timedelta:
    if shown:
        return form.show(value, from_1904=from_1904)
    if form.date is not None:
        return form.date.value(value, from_1904=from_1904)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


@contextmanager
def _as_damage(name: str) -> Iterator[None]:
    """The library follows the bytes wherever they lead, so whatever it raises is the file's."""
    try:
        yield
    except (ExtractionError, MemoryError, RecursionError):
        raise
    except Exception as error:
        if isinstance(error, xlrd.XLRDError) and "encrypted" in str(error).lower():
            raise needs_password(name) from error
        raise damaged(name) from error
