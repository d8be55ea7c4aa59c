"""Parquet files, by DuckDB, which datasets need anyhow. Its import takes a third of a second, and only a child that meets such a file
pays it."""

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config.errors import ExtractionError
from ingestion.extract.archive import damaged
from ingestion.extract.base import Limits
from ingestion.extract.tabular.base import RawSheet

if TYPE_CHECKING:
    import duckdb

ROWS_AT_ONCE = 1_000
MAX_COLUMNS = 4_096
MAX_SHOWN_CHARS = 20_000


class ParquetReader:
    media_type = "application/vnd.apache.parquet"

    def sheets(self, path: Path, *, name: str, limits: Limits, shown: bool) -> Iterator[RawSheet]:
        with _opened(name) as database:
            columns = database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            (total,) = database.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [str(path)]).fetchone() or (0,)
            if len(columns) > MAX_COLUMNS:
                happened = f"{name} has {len(columns):,} columns, more than {MAX_COLUMNS:,}."
                raise ExtractionError(happened, advice="Split it.", reason="too_large", retires=True)
            rows = _rows(database, path, name=name, shown=shown)
            names, types = zip(*((str(column[0]), str(column[1])) for column in columns), strict=True) if columns else ((), ())
            with closing(rows):
                yield RawSheet(name="", rows=rows, names=names, types=types, total_rows=int(total or 0))


def _rows(database: "duckdb.DuckDBPyConnection", path: Path, *, name: str, shown: bool) -> Iterator[tuple[int, list[Any]]]:
    with _as_damage(name):
        result = database.execute("SELECT * FROM read_parquet(?)", [str(path)])
    number = 0
    while True:
        with _as_damage(name):
            some = result.fetchmany(ROWS_AT_ONCE)
        if not some:
            return
        for row in some:
            cells = [_shown(value) for value in row] if shown else list(row)
            while cells and cells[-1] in (None, ""):
                cells.pop()
            if cells:
                yield number, cells
            number += 1


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, (list, dict, tuple)):
        return json.dumps(value, ensure_ascii=False, default=str)[:MAX_SHOWN_CHARS]
    if isinstance(value, dt.datetime) and value.time() == dt.time() and value.tzinfo is None:
        return value.date().isoformat()
    return str(value)[:MAX_SHOWN_CHARS]


@contextmanager
def _opened(name: str) -> Iterator["duckdb.DuckDBPyConnection"]:
    from ingestion.datasets.engine import connect

    with _as_damage(name), closing(connect()) as database:
        yield database


@contextmanager
def _as_damage(name: str) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except (duckdb.Error, UnicodeDecodeError, OverflowError, ValueError) as error:
        if "encrypt" in str(error).lower():
            happened = f"{name} is encrypted."
            raise ExtractionError(happened, advice="Write it without encryption.", reason="encrypted", retires=True) from error
        raise damaged(name) from error
