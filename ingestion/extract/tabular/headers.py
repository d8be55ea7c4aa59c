"""Where the names of the columns stand, if anywhere: titles above them are skipped, and a first row of data is not taken for names."""

import datetime as dt
import itertools
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from ingestion.extract.tabular.base import HeaderKind, Value

LOOKED_AT = 30
MAX_PREAMBLE = 12
MAX_NAME_CHARS = 200
# A header may leave some of its columns without a name.
FILLED_SHARE = 0.6
# Names may repeat (two columns "amount"); rows in which most cells repeat are data. Where no figures below tell names from data, fewer may.
DISTINCT_SHARE = 0.5
LIKELY_DISTINCT_SHARE = 0.8
YEARS = range(1800, 2201)
# Numbers, amounts, percentages, dates and times, as people write them in any country.
_FIGURES = r"\d.,'\u00a0\u202f /:%-"
_DATA_TEXT = re.compile(
    rf"[-+(]?[$€£¥]?\s*[-+]?[{_FIGURES}]*\d[{_FIGURES})]*(?:[eE][-+]?\d+)?\s?[$€£¥%]?|true|false",
    re.IGNORECASE,
)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")

Row = list[Value]


def split_header(rows: Iterator[Row]) -> tuple[tuple[str, ...], tuple[str, ...], HeaderKind, Iterator[Row]]:
    """(preamble, header, how it is known, the rows below it)."""
    first = list(itertools.islice(rows, LOOKED_AT))
    place = _header_place(first)
    kind = _header_kind(first[place], first[place + 1 :]) if place is not None else "none"
    if place is None or kind == "none":
        return (), (), "none", itertools.chain(first, rows)
    preamble = tuple(line for row in first[:place] if (line := " ".join(str(cell).strip() for cell in row if not _is_empty(cell))))
    header = tuple(" ".join(str(cell).split()) if cell is not None else "" for cell in first[place])
    return preamble, header, kind, itertools.chain(first[place + 1 :], rows)


def is_data(cell: Value) -> bool:
    """Whether a cell is a measured thing and not a name."""
    if isinstance(cell, str):
        text = cell.strip()
        return bool(_DATA_TEXT.fullmatch(text) or _ISO_TIME.match(text)) if len(text) < MAX_NAME_CHARS else True
    return isinstance(cell, (bool, int, float, Decimal, dt.date, dt.time, dt.timedelta))


def _header_place(rows: Sequence[Row]) -> int | None:
    """The first row that is about as wide as the table."""
    widths = sorted(_filled(row) for row in rows)
    if not widths:
        return None
    usual = widths[len(widths) // 2]
    if usual < 2:
        return 0
    for place, row in enumerate(rows[: MAX_PREAMBLE + 1]):
        if _filled(row) >= max(2, usual * FILLED_SHARE):
            return place
    return None


def _header_kind(names: Row, below: Sequence[Row]) -> HeaderKind:
    filled = [cell for cell in names if not _is_empty(cell)]
    if not below or not filled or _distinct(filled) < len(filled) * DISTINCT_SHARE or not _are_names(filled):
        return "none"
    usual = max((len(row) for row in below), default=0)
    columns = [[row[at] for row in below if at < len(row) and not _is_empty(row[at])] for at in range(min(len(names), usual))]
    for name, column in zip(names, columns, strict=False):
        if (not is_data(name) or _is_year(name)) and column and sum(map(is_data, column)) > len(column) / 2:
            return "clear"
    if any(name in column for name, column in zip(names, columns, strict=False) if not _is_empty(name)):
        return "none"
    return "likely" if _may_be_names(filled) else "none"


def _are_names(filled: Sequence[Value]) -> bool:
    names = [cell for cell in filled if not is_data(cell) and isinstance(cell, str) and len(cell) <= MAX_NAME_CHARS]
    if len(names) == len(filled):
        return True
    others = [cell for cell in filled if cell not in names]
    return bool(names) and all(_is_year(cell) for cell in others)


def _is_year(cell: Value) -> bool:
    text = str(cell).removesuffix(".0").strip()
    return text.isdecimal() and int(text[:9]) in YEARS


def _may_be_names(filled: Sequence[Value]) -> bool:
    """Of a row with nothing but texts below it: several names, of which one may stand twice however few they are."""
    distinct = _distinct(filled)
    return distinct > 1 and distinct >= min(len(filled) - 1, len(filled) * LIKELY_DISTINCT_SHARE)


def _distinct(filled: Sequence[Value]) -> int:
    return len({str(cell).strip().casefold() for cell in filled})


def _filled(row: Row) -> int:
    return sum(not _is_empty(cell) for cell in row)


def _is_empty(cell: Value) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())
