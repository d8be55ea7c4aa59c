"""A dataset in words: its name, its columns with their types and ranges, some of its rows, in one passage that fits the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ingestion.datasets.columns import Column
from ingestion.extract.tables import markdown_table

SAMPLE_ROWS = 10
MAX_CELL = 80
SHORT_CELL = 24
LEAST_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Described:
    """What there is to say. `values` has, for some columns, what stands between which ends, or which few values there are."""

    name: str
    origin: str
    rows: int
    columns: Sequence[Column]
    values: dict[str, str]
    sample: Sequence[Sequence[Any]]
    remarks: Sequence[str] = ()
    files: int = 1


def describe(dataset: Described, *, fits: Callable[[str], bool], finish: Callable[[str], str] = str.strip) -> str:
    """The fullest description that `fits`, as `finish` leaves it: rows of the sample go first, then long cells and values, then columns
    from the end."""
    for rows in range(min(SAMPLE_ROWS, len(dataset.sample)), -1, -1):
        for cell in (MAX_CELL, SHORT_CELL) if rows in (1, 2, 3) else (MAX_CELL,):
            if fits(text := finish(_written(dataset, rows=rows, cell=cell, columns=len(dataset.columns), values=True))):
                return text
    columns = len(dataset.columns)
    while not fits(text := finish(_written(dataset, rows=0, cell=0, columns=columns, values=False))):
        if columns <= LEAST_COLUMNS:
            return _shortened(text, fits)
        columns = max(LEAST_COLUMNS, columns * 4 // 5)
    return text


def _written(dataset: Described, *, rows: int, cell: int, columns: int, values: bool) -> str:
    shown = dataset.columns[:columns]
    more = len(dataset.columns) - len(shown)
    listed = "; ".join(_column(column, dataset.values.get(column.name, "") if values else "") for column in shown)
    files = f" in {dataset.files:,} files" if dataset.files > 1 else ""
    size = f"{_counted(dataset.rows, 'row')}{files}, {_counted(len(dataset.columns), 'column')}"
    head = f"Dataset {dataset.name}, from {dataset.origin}: {size}. It is queried with SQL."
    parts = [head, *(remark for remark in dataset.remarks if values), f"Columns: {listed}{f'; and {more:,} more' if more else ''}."]
    if rows:
        table = [[column.name for column in shown], *([_cell(value, cell) for value in row] for row in dataset.sample[:rows])]
        parts.append(markdown_table(table))
    return "\n\n".join(parts)


def _column(column: Column, values: str) -> str:
    kind = "empty" if column.is_empty else column.type
    return f"{column.name} ({kind}{f': {values}' if values else ''})"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _cell(value: Any, most: int) -> str:
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shortened(text: str, fits: Callable[[str], bool]) -> str:
    """Names alone may be longer than a small model reads: cut by halves, a character at least."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle - 1)
    return text[:low].rstrip() or text[:1]
