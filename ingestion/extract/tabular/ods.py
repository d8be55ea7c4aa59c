"""OpenDocument spreadsheets (.ods): the file has of each cell the value and the text that is shown.

Read as events of its XML: odfpy builds a tree of everything first, and is kept no more."""

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from config.errors import ExtractionError
from ingestion.extract.archive import Archive
from ingestion.extract.base import Limits
from ingestion.extract.tabular.base import Merge, RawSheet
from ingestion.extract.tabular.xml_events import Handlers, read_pieces

CONTENT = "content.xml"
MAX_COLUMN = 16_384
MAX_MERGES = 20_000
# Cells that stand for many in the file are written out; no person repeats more.
MAX_REPEATED_CELLS = 5_000_000
_DURATION = re.compile(r"(-?)P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?")
# Inside of these stands no text of a cell.
_ASIDE = frozenset({"annotation", "tracked-changes", "shapes", "frame", "custom-shape", "forms"})


class OdsReader:
    media_type = "application/vnd.oasis.opendocument.spreadsheet"

    def sheets(self, path: Path, *, name: str, limits: Limits, shown: bool) -> Iterator[RawSheet]:
        with Archive(path, name=name, limits=limits) as archive:
            yield from _Sheets(archive, shown=shown).walk()


class _Sheets:
    """One file holds all sheets one after the other, so that each is read up to where the next begins."""

    def __init__(self, archive: Archive, *, shown: bool) -> None:
        self._handlers = _ContentHandlers(archive.name, shown=shown)
        self._events = read_pieces(archive.pieces(CONTENT), self._handlers, name=archive.name)

    def walk(self) -> Iterator[RawSheet]:
        number = 0
        while self._reach(number):
            table = self._handlers.tables[number]
            yield RawSheet(name=table.name, rows=self._rows(number), hidden=table.hidden, merges=table.merges)
            for _ in self._rows(number):
                pass  # whoever stopped reading before its end
            number += 1

    def _reach(self, number: int) -> bool:
        while len(self._handlers.tables) <= number:
            if next(self._events, self) is self:
                return False
        return True

    def _rows(self, number: int) -> Iterator[tuple[int, list[Any]]]:
        table = self._handlers.tables[number]
        while True:
            ready, table.ready = table.ready, []
            for first, times, cells in ready:
                for place in range(times):
                    yield first + place, list(cells)
            if table.closed and not table.ready:
                return
            next(self._events, None)


class _Table:
    def __init__(self, name: str, *, hidden: bool) -> None:
        self.name = name
        self.hidden = hidden
        self.merges: list[Merge] = []
        self.ready: list[tuple[int, int, list[Any]]] = []
        """(number of the first row, how many are like it, cells)"""
        self.closed = False
        self.row = 0
        self.repeated = 0


class _ContentHandlers(Handlers):
    def __init__(self, name: str, *, shown: bool) -> None:
        self._name = name
        self._shown = shown
        self._empty = "" if shown else None
        self.tables: list[_Table] = []
        self._hidden_styles: set[str] = set()
        self._style = ""
        self._aside = 0
        self._depth = 0  # tables inside of cells
        self._rows_like_it = 1
        self._line: list[Any] = []
        self._cell: dict[str, str] = {}
        self._text: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._aside or name in _ASIDE:
            self._aside += 1
        elif name in ("table-cell", "covered-table-cell"):
            self._cell = _bare(attributes)
            self._text = []
        elif name == "p" and self._text:
            self._text.append("\n")
        elif name in ("s", "tab", "line-break") and self._text is not None:
            self._text.append(" " * _count(_bare(attributes).get("c", "1"), most=1_000) if name == "s" else " ")
        elif name == "table-row" and self.tables:
            self._rows_like_it = _count(_bare(attributes).get("number-rows-repeated", "1"), most=1_048_576)
            self._line = []
        elif name == "table":
            self._start_table(_bare(attributes))
        elif name == "style":
            self._style = _bare(attributes).get("name", "")
        elif name == "table-properties" and _bare(attributes).get("display") == "false":
            self._hidden_styles.add(self._style)

    def end(self, name: str) -> None:
        if self._aside:
            self._aside -= 1
        elif name in ("table-cell", "covered-table-cell"):
            self._end_cell()
        elif name == "table-row" and self.tables:
            self._end_row()
        elif name == "table":
            self._depth -= 1
            if self._depth == 0:
                self.tables[-1].closed = True

    def text(self, data: str) -> None:
        if self._text is not None and not self._aside:
            self._text.append(data)

    def _start_table(self, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1:
            self.tables.append(_Table(attributes.get("name", ""), hidden=attributes.get("style-name", "") in self._hidden_styles))

    def _end_cell(self) -> None:
        if self._text is None or not self.tables:
            return
        table, cell = self.tables[-1], self._cell
        value = _value(cell, "".join(self._text).strip(), shown=self._shown)
        self._text = None
        times = min(_count(cell.get("number-columns-repeated", "1"), most=MAX_COLUMN), MAX_COLUMN - len(self._line))
        down, right = (
            _count(cell.get("number-rows-spanned", "1"), most=10_000),
            _count(cell.get("number-columns-spanned", "1"), most=10_000),
        )
        if (down > 1 or right > 1) and len(table.merges) < MAX_MERGES:
            at = len(self._line)
            table.merges.append(Merge(table.row, at, table.row + down - 1, at + right - 1))
        self._line.extend([self._empty if value is None else value] * times)

    def _end_row(self) -> None:
        table, line, times = self.tables[-1], self._line, self._rows_like_it
        while line and line[-1] == self._empty:
            line.pop()
        if line:
            table.repeated += len(line) * (times - 1)
            if table.repeated > MAX_REPEATED_CELLS:
                happened = f"Sheet {table.name} of {self._name} repeats more than {MAX_REPEATED_CELLS:,} cells."
                raise ExtractionError(happened, advice="Split it into smaller ones.", reason="too_large", retires=True)
            table.ready.append((table.row, times, line))
        table.row += times
        self._line = []


def _bare(attributes: dict[str, str]) -> dict[str, str]:
    return {key.rpartition(":")[2]: value for key, value in attributes.items()}


def _count(text: str, *, most: int) -> int:
    return min(max(int(text), 1), most) if text.isdecimal() and len(text) < 10 else 1


def _value(cell: dict[str, str], text: str, *, shown: bool) -> Any:
    kind = cell.get("value-type", "")
    if kind == "date" and (moment := _moment(cell.get("date-value", ""))) is not None:
        return (str(moment) if _is_full_day(text) else text) if shown else moment
    if shown:
        return text or cell.get("value") or cell.get("string-value") or ""
    if kind in ("float", "percentage", "currency"):
        return _number(cell.get("value", ""))
    if kind == "boolean":
        return cell.get("boolean-value") == "true"
    if kind == "time" and (span := _duration(cell.get("time-value", ""))) is not None:
        return span
    return cell.get("string-value", text) or None


def _is_full_day(text: str) -> bool:
    """Whether what is shown names day, month and year: those are written in one order, as 04/03/2024 is two days."""
    numbers = len(re.findall(r"\d+", text))
    return not text or numbers >= 3 or (numbers == 2 and any(char.isalpha() for char in text))


def _moment(text: str) -> dt.date | dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text[:26]) if "T" in text else dt.date.fromisoformat(text)
    except ValueError:
        return None


def _number(text: str) -> int | float | None:
    try:
        return int(text) if len(text) < 16 and text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return None


def _duration(text: str) -> dt.time | dt.timedelta | None:
    match = _DURATION.fullmatch(text)
    if match is None or len(text) > 40:
        return None
    sign, days, hours, minutes, seconds = match.groups(default="0")
    try:
        span = dt.timedelta(days=int(days), hours=int(hours), minutes=int(minutes), seconds=float(seconds.replace(",", ".")))
    except OverflowError:
        return None
    if sign == "-":
        return -span
    return (dt.datetime.min + span).time() if span < dt.timedelta(days=1) else span
