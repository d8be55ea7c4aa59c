"""Excel workbooks (.xlsx, .xlsm), read cell by cell as the file has them.

No library: openpyxl takes strict workbooks for empty ones and shows no number by its format, calamine asks for memory for every cell
between the first and the last (17 thousand million, if those are A1 and XFD1048576). What a sheet says of its own size is not even read."""

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingestion.extract.archive import Archive
from ingestion.extract.base import Limits
from ingestion.extract.tabular.base import Merge, RawSheet
from ingestion.extract.tabular.number_formats import NumberFormat, number_format
from ingestion.extract.tabular.xlsx_charts import chart_notes
from ingestion.extract.tabular.xlsx_parts import SheetPart, Workbook, read_formats, read_texts, read_workbook, relations, unescape
from ingestion.extract.tabular.xml_events import Handlers, read_pieces

MAX_ROW, MAX_COLUMN = 1_048_576, 16_384
MAX_MERGES = 20_000
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_COLUMNS: dict[str, int] = {}


class XlsxReader:
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

    def sheets(self, path: Path, *, name: str, limits: Limits, shown: bool) -> Iterator[RawSheet]:
        with Archive(path, name=name, limits=limits) as archive:
            workbook = read_workbook(archive)
            cells = _Cells(
                texts=read_texts(archive, workbook.relations.get("sharedStrings")),
                formats=read_formats(archive, workbook.relations.get("styles")),
                from_1904=workbook.from_1904,
                shown=shown,
            )
            for sheet in workbook.sheets:
                yield _raw_sheet(archive, workbook, sheet, cells, shown=shown)


def _raw_sheet(archive: Archive, workbook: Workbook, sheet: SheetPart, cells: "_Cells", *, shown: bool) -> RawSheet:
    handlers = _SheetHandlers(cells)

    def rows() -> Iterator[tuple[int, list[Any]]]:
        for _ in read_pieces(archive.pieces(sheet.part), handlers, name=archive.name):
            yield from handlers.take()
        if shown:
            notes.extend(chart_notes(archive, relations(archive, sheet.part)))
        if handlers.unsolved:
            warnings.append(f"{handlers.unsolved:,} formulas of sheet {sheet.name} have no result in the file; they stand as formulas.")

    notes: list[str] = []
    warnings: list[str] = []
    return RawSheet(name=sheet.name, rows=rows(), hidden=sheet.hidden, merges=handlers.merges, notes=notes, warnings=warnings)


class _Cells:
    """What the texts of a cell's element mean."""

    def __init__(self, *, texts: list[str], formats: list[NumberFormat], from_1904: bool, shown: bool) -> None:
        self._texts = texts
        self._formats = formats or [number_format("General")]
        self._from_1904 = from_1904
        self._shown = shown
        self.empty = "" if shown else None

    def read(self, kind: str, style: str, text: str) -> Any:
        if kind == "s":
            place = int(text) if text.isdecimal() and len(text) < 9 else -1
            found = self._texts[place] if 0 <= place < len(self._texts) else ""
            return found or self.empty
        if kind in ("n", ""):
            return self._number(style, text)
        if kind == "b":
            return ("TRUE" if text == "1" else "FALSE") if self._shown else text == "1"
        if kind == "e":
            return text if self._shown else None
        if kind == "d":
            return _iso_date(text, shown=self._shown)
        return unescape(text) or self.empty

    def _number(self, style: str, text: str) -> Any:
        number = _as_number(text)
        if number is None:
            return text.strip() or self.empty
        place = int(style) if style.isdecimal() and len(style) < 6 else 0
        form = self._formats[place] if place < len(self._formats) else self._formats[0]
        if self._shown:
            return form.show(number, from_1904=self._from_1904)
        return form.date.value(number, from_1904=self._from_1904) if form.date is not None else number


class _SheetHandlers(Handlers):
    def __init__(self, cells: _Cells) -> None:
        self._cells = cells
        self._ready: list[tuple[int, list[Any]]] = []
        self._row = -1
        self._line: list[Any] = []
        self._at = -1
        self._kind = self._style = ""
        self._text: list[str] = []
        self._formula: list[str] = []
        self._open: list[str] | None = None
        self._reading = False
        self.merges: list[Merge] = []
        self.unsolved = 0

    def take(self) -> list[tuple[int, list[Any]]]:
        ready, self._ready = self._ready, []
        return ready

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            self._at = _column(attributes.get("r"), after=self._at)
            self._kind = attributes.get("t", "")
            self._style = attributes.get("s", "")
            self._text = []
            self._formula = []
        elif name == "v":
            self._open = self._text
        elif name == "t":
            self._open = None if self._reading else self._text
        elif name == "row":
            stated = attributes.get("r", "")
            self._row = int(stated) - 1 if stated.isdecimal() and len(stated) < 8 else self._row + 1
            self._line = []
            self._at = -1
        elif name == "f":
            self._open = self._formula
        elif name == "rPh":
            self._reading = True
        elif name == "mergeCell" and len(self.merges) < MAX_MERGES and (merge := _merge(attributes.get("ref", ""))):
            self.merges.append(merge)

    def end(self, name: str) -> None:
        if name == "c":
            self._end_cell()
        elif name in ("v", "t", "f"):
            self._open = None
        elif name == "row":
            if self._line:
                self._ready.append((self._row, self._line))
        elif name == "rPh":
            self._reading = False

    def text(self, data: str) -> None:
        if self._open is not None:
            self._open.append(data)

    def _end_cell(self) -> None:
        if not self._text:
            if not self._formula:
                return
            self.unsolved += 1
            value = "=" + "".join(self._formula)
        else:
            value = self._cells.read(self._kind, self._style, "".join(self._text))
        if value is None or value == "" or not 0 <= self._at < MAX_COLUMN:
            return
        line = self._line
        missing = self._at - len(line)
        if missing >= 0:
            if missing:
                line.extend([self._cells.empty] * missing)
            line.append(value)
        else:
            line[self._at] = value


def _column(reference: str | None, *, after: int) -> int:
    """From 0; a cell without a reference follows the one before it."""
    if not reference:
        return after + 1
    letters = reference.rstrip("0123456789")
    place = _COLUMNS.get(letters)
    if place is None:
        if not _REFERENCE.fullmatch(reference):
            return after + 1
        place = 0
        for letter in letters:
            place = place * 26 + ord(letter) - 64
        place -= 1
        _COLUMNS[letters] = place
    return place


def _merge(reference: str) -> Merge | None:
    first, _, last = reference.partition(":")
    corners = [_REFERENCE.fullmatch(corner) for corner in (first, last or first)]
    if corners[0] is None or corners[1] is None:
        return None
    (top, left), (bottom, right) = ((int(corner[2]) - 1, _column(corner[0], after=-1)) for corner in corners if corner)
    return Merge(top, left, bottom, right) if top <= bottom and left <= right else None


def _as_number(text: str) -> int | float | None:
    try:
        return int(text) if len(text) < 16 and text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return None


def _iso_date(text: str, *, shown: bool) -> Any:
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return text
    value = moment.date() if moment.time() == dt.time() else moment
    return str(value) if shown else value
