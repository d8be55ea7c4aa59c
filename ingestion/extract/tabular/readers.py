"""The tabular formats: name (as in formats.FORMATS) -> reader, imported when a file of that format comes."""

from collections.abc import Iterator
from pathlib import Path

from config.registry import Registry
from ingestion.extract.base import Limits
from ingestion.extract.tabular.base import RawSheet, Sheet, TableReader
from ingestion.extract.tabular.headers import split_header

TABULAR_FORMATS: dict[str, str] = {
    "csv": "ingestion.extract.tabular.delimited:DelimitedReader",
    "xlsx": "ingestion.extract.tabular.xlsx:XlsxReader",
    "xls": "ingestion.extract.tabular.xls:XlsReader",
    "ods": "ingestion.extract.tabular.ods:OdsReader",
    "parquet": "ingestion.extract.tabular.parquet:ParquetReader",
}
READERS: Registry[type[TableReader]] = Registry("tabular format", TABULAR_FORMATS)


def read_sheets(path: Path, *, format: str, name: str, limits: Limits) -> Iterator[Sheet]:
    """The sheets of a tabular file with typed values, in its order, hidden ones too; rows are read while they are iterated, and there is no
    limit of rows or columns. To be closed (`contextlib.closing`) when it is not iterated to its end. Raises ExtractionError."""
    for sheet in READERS.load(format)().sheets(path, name=name, limits=limits, shown=False):
        yield _with_header(sheet)


def _with_header(sheet: RawSheet) -> Sheet:
    rows = (cells for _, cells in sheet.rows)
    if sheet.names is not None:
        return Sheet(
            name=sheet.name,
            hidden=sheet.hidden,
            header=sheet.names,
            header_kind="stated",
            preamble=(),
            rows=rows,
            types=sheet.types,
            total_rows=sheet.total_rows,
        )
    preamble, header, kind, below = split_header(rows)
    return Sheet(name=sheet.name, hidden=sheet.hidden, header=header, header_kind=kind, preamble=preamble, rows=below)
