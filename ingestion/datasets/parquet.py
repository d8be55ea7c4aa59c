"""Rows to a typed Parquet file, in bounded memory: cells are written down as text while their types are found, then typed by column."""

import csv
import errno
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from config.errors import ExtractionError
from ingestion.datasets.columns import Column
from ingestion.datasets.engine import connect, words_of
from ingestion.datasets.guess import TEXT, Decision, Guess, text_of
from ingestion.datasets.names import column_names, literal, quoted

MAX_COLUMNS = 1_000
MAX_PARTS = 100
MAX_LINE_BYTES = 8 * 1024 * 1024
ROW_GROUP = 122_880
ROW_GROUP_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Written:
    """A Parquet file that was made, with its columns and rows."""

    path: Path
    columns: list[Column]
    rows: int


@dataclass(frozen=True, slots=True)
class Part:
    """A Parquet file of one dataset; `values` are those that its partition columns have in all of its rows."""

    path: Path
    rows: int
    values: dict[str, str | None]


class TooWide(ExtractionError):
    def __init__(self, width: int) -> None:
        happened = f"The table has {width:,} columns, more than {MAX_COLUMNS:,}."
        super().__init__(happened, advice="Split it.", reason="too_many_columns", retires=True)


def write_rows(header: Sequence[str], rows: Iterable[Sequence[Any]], *, to: Path) -> Written | None:
    """Rows of any length, typed by what they hold; None without a row. Raises ExtractionError for too many columns."""
    texts = to.with_suffix(".csv")
    try:
        guesses, count = _write_texts(rows, texts, width=len(header))
        if not count:
            return None
        names = column_names(header, len(guesses))
        size = texts.stat().st_size
        with _opened("The table") as database:
            _read_texts(database, texts, width=len(guesses))
            decisions = _verified(database, [guess.decide() for guess in guesses])
            typed = [decision.typed(f"c{place}") for place, decision in enumerate(decisions)]
            chosen = ", ".join(f"{value} AS {quoted(name)}" for value, name in zip(typed, names, strict=True))
            _copy(database, f"SELECT {chosen} FROM texts", to=to, row_bytes=size // count)  # noqa: S608 - names are quoted
        columns = [Column(n, d.type, not g.count) for n, d, g in zip(names, decisions, guesses, strict=True)]
        return Written(to, columns, count)
    finally:
        texts.unlink(missing_ok=True)


def rewrite_parquet(data: Path, *, name: str, to: Path) -> Written | None:
    """A Parquet file as one of ours: its types, with names that SQL can tell apart. Raises ExtractionError where it cannot be read."""
    source = f"read_parquet({literal(str(data))})"
    with _opened(name) as database:
        described = database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 - the path is ours
        _check_width(len(described))
        names = column_names([row[0] for row in described], len(described))
        places = [f"c{place}" for place in range(len(names))]
        given = f"(SELECT * FROM {source}) AS given({', '.join(places)})"  # noqa: S608 - names are ours
        counts = ", ".join(f"count({place})" for place in places)
        count, *filled = database.execute(f"SELECT count(*), {counts} FROM {given}").fetchone() or (0,)  # noqa: S608
        if not count:
            return None
        chosen = ", ".join(f"{place} AS {quoted(name)}" for place, name in zip(places, names, strict=True))
        _copy(database, f"SELECT {chosen} FROM {given}", to=to, row_bytes=data.stat().st_size * 4 // count)  # noqa: S608
    kinds = [str(row[1]) for row in described]
    return Written(to, [Column(n, kind, not held) for n, kind, held in zip(names, kinds, filled, strict=True)], count)


def partition(written: Written, *, by: Sequence[str], name: str) -> list[Part]:
    """The file in parts, one for each combination of values in the columns `by`; itself where there are none. Raises ExtractionError for
    a column that is not there, and for too many parts."""
    if not by:
        return [Part(written.path, written.rows, {})]
    known = {column.name.casefold(): column.name for column in written.columns}
    if missing := [each for each in by if each.casefold() not in known]:
        happened = f"{name} has no column “{missing[0]}”, which table.partition_by names."
        raise ExtractionError(happened, advice="Correct the file or its policy.", reason="no_partition_column", retires=True)
    columns = [known[each.casefold()] for each in by]
    listed = ", ".join(map(quoted, columns))
    source = f"read_parquet({literal(str(written.path))})"
    parts: list[Part] = []
    with _opened(name) as database:
        groups = f"SELECT {listed}, count(*) FROM {source} GROUP BY ALL ORDER BY ALL LIMIT {MAX_PARTS + 1}"  # noqa: S608 - names are quoted
        found = database.execute(groups).fetchall()
        if len(found) > MAX_PARTS:
            happened = f"{name} would be in more than {MAX_PARTS} parts by {', '.join(columns)}."
            raise ExtractionError(happened, advice="Partition by fewer columns.", reason="too_many_parts", retires=True)
        for number, (*values, count) in enumerate(found):
            path = written.path.with_suffix(f".{number}.parquet")
            texts = [None if value is None else str(value) for value in values]
            parts.append(Part(path, count, dict(zip(columns, texts, strict=True))))
            _copy(database, f"SELECT * FROM {source} WHERE {_matching(columns, texts)}", to=path, row_bytes=0)  # noqa: S608
    written.path.unlink()
    return parts


def _matching(columns: Sequence[str], texts: Sequence[str | None]) -> str:
    conditions = (
        f"{quoted(column)} IS NULL" if text is None else f"CAST({quoted(column)} AS VARCHAR) = {literal(text)}"
        for column, text in zip(columns, texts, strict=True)
    )
    return " AND ".join(conditions)


@contextmanager
def _opened(name: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database whose errors are told as those of any extractor."""
    try:
        with connect() as database:
            yield database
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except duckdb.IOException as error:
        if "too large" in str(error).lower():  # RLIMIT_FSIZE
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG)) from error
        raise _unreadable(name, error) from error
    except duckdb.Error as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: duckdb.Error) -> ExtractionError:
    message = f"{name} cannot be read as a table ({words_of(error)})."
    return ExtractionError(message, advice="Write the file again.", reason="damaged", retires=True)


def _write_texts(rows: Iterable[Sequence[Any]], texts: Path, *, width: int) -> tuple[list[Guess], int]:
    guesses = [Guess() for _ in range(width)]
    count = 0
    with texts.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in rows:
            cells = [text_of(value) for value in row]
            if len(cells) > len(guesses):
                _check_width(len(cells))
                guesses += [Guess() for _ in range(len(cells) - len(guesses))]
            for guess, cell in zip(guesses, cells, strict=False):
                if cell:
                    guess.add(cell)
            # All as long as the header, so that most need no filling later.
            writer.writerow(itertools.chain(cells, itertools.repeat("", max(0, width - len(cells)))))
            count += 1
    _check_width(len(guesses))
    return guesses, count


def _check_width(width: int) -> None:
    if width > MAX_COLUMNS:
        raise TooWide(width)


def _read_texts(database: duckdb.DuckDBPyConnection, texts: Path, *, width: int) -> None:
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(width))
    database.execute(
        f"CREATE VIEW texts AS SELECT * FROM read_csv({literal(str(texts))},"  # noqa: S608 - path and names are ours
        f" columns = {{{columns}}}, auto_detect = false, header = false,"
        " delim = ',', quote = '\"', escape = '\"', new_line = '\\n', nullstr = '', null_padding = true, parallel = false,"
        f" max_line_size = {MAX_LINE_BYTES}, buffer_size = {2 * MAX_LINE_BYTES})"
    )


def _verified(database: duckdb.DuckDBPyConnection, decisions: list[Decision]) -> list[Decision]:
    """A type that does not hold every cell after all, in the eyes of who makes the values, is text."""
    doubtful = [(place, each) for place, each in enumerate(decisions) if each is not TEXT]
    if not doubtful:
        return decisions
    lost = ", ".join(f"count(*) FILTER ({each.loses(f'c{place}')})" for place, each in doubtful)
    counts = database.execute(f"SELECT {lost} FROM texts").fetchone() or ()  # noqa: S608 - names are ours
    wrong = {place for (place, _), count in zip(doubtful, counts, strict=True) if count}
    return [TEXT if place in wrong else each for place, each in enumerate(decisions)]


def _copy(database: duckdb.DuckDBPyConnection, select: str, *, to: Path, row_bytes: int) -> None:
    group = max(2_048, min(ROW_GROUP, ROW_GROUP_BYTES // max(1, row_bytes)))
    database.execute(
        f"COPY ({select}) TO {literal(str(to))} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, ROW_GROUP_SIZE {group})"
    )
