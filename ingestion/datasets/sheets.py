"""The sheets of a tabular file, with what the policy says of its delimiter and header above what its reader finds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingestion.datasets.wanted import Wanted
from ingestion.extract.base import Limits
from ingestion.extract.tabular.base import Sheet
from ingestion.extract.tabular.dialects import Dialect, records
from ingestion.extract.tabular.headers import split_header
from ingestion.extract.tabular.readers import READERS, read_sheets
from ingestion.extract.tabular.text_stream import find_encoding, lines, open_text


def sheets_of(path: Path, *, format: str, name: str, wanted: Wanted, limits: Limits) -> Iterator[Sheet]:
    """Like `read_sheets`."""
    if format == "csv" and wanted.delimiter:
        yield from _delimited(path, wanted.delimiter, header=wanted.header)
    elif wanted.header:
        yield from read_sheets(path, format=format, name=name, limits=limits)
    else:
        for sheet in READERS.load(format)().sheets(path, name=name, limits=limits, shown=False):
            yield _headless(sheet.name, (cells for _, cells in sheet.rows), hidden=sheet.hidden)


def _delimited(path: Path, delimiter: str, *, header: bool) -> Iterator[Sheet]:
    encoding, _ = find_encoding(path)
    with open_text(path, encoding=encoding) as stream:
        rows = (row for row in records(lines(stream), Dialect(delimiter)) if any(cell.strip() for cell in row))
        if not header:
            yield _headless("", rows)
            return
        preamble, names, kind, below = split_header(rows)  # type: ignore[arg-type]
        yield Sheet(name="", hidden=False, header=names, header_kind=kind, preamble=preamble, rows=below)


def _headless(name: str, rows: Iterator[list[Any]], *, hidden: bool = False) -> Sheet:
    return Sheet(name=name, hidden=hidden, header=(), header_kind="none", preamble=(), rows=rows)
