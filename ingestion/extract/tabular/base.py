"""What every tabular file is read as: sheets of rows, one after the other, of values or of the text that a person sees in their place."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Protocol

from ingestion.extract.base import Limits

# What a cell holds. Formats of text (CSV) give text and None only: what a column means is for who makes a dataset of it to find out.
# Lists and structures of Parquet come as lists and dicts.
Value = None | bool | int | float | Decimal | str | bytes | dt.date | dt.datetime | dt.time | dt.timedelta | list[Any] | dict[str, Any]

HeaderKind = Literal["stated", "clear", "likely", "none"]
"""How the header is known: the file says so (Parquet, an Excel table); what stands below is of other types; all is text and the first
row looks like names; or there is none."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Cells that are shown as one, counted from 0, the last ones included."""

    top: int
    left: int
    bottom: int
    right: int


@dataclass(frozen=True, slots=True)
class RawSheet:
    """`rows` gives (row number from 0, cells), only rows with something in them, cells without empty ones at the end. It is good until the
    next sheet is asked for. `merges`, `notes` and `warnings` are complete when `rows` has ended."""

    name: str
    rows: Iterator[tuple[int, list[Any]]]
    hidden: bool = False
    names: tuple[str, ...] | None = None
    """Of the columns, where the format states them; then no row repeats them."""
    types: tuple[str, ...] | None = None
    total_rows: int | None = None
    merges: list[Merge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Markdown that belongs to the sheet and stands in no cell, such as its charts."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sheet:
    """`rows` are the data below the header, each as long as its last value (not padded, so it may be longer than the header too), empty
    rows left out. Good until the next sheet is asked for."""

    name: str
    """ "" where the format has no sheets."""
    hidden: bool
    header: tuple[str, ...]
    """As it stands in the file: names may be empty and repeat. () when there is none."""
    header_kind: HeaderKind
    preamble: tuple[str, ...]
    """Lines above the header: titles and remarks."""
    rows: Iterator[list[Value]]
    types: tuple[str, ...] | None = None
    """Of the columns in the words of the format, where it states them (Parquet)."""
    total_rows: int | None = None


class TableReader(Protocol):
    media_type: str

    def sheets(self, path: Path, *, name: str, limits: Limits, shown: bool) -> Iterator[RawSheet]:
        """Cells are values (None for an empty one), or with `shown` the text that a person sees ("" for an empty one).
        Raises ExtractionError, also while rows are read."""
        ...
