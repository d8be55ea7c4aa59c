"""Sheets as Markdown: a heading for each, tables and remarks in reading order, and a warning for whatever had to be left out."""

import itertools
from dataclasses import dataclass, field

from ingestion.extract.base import Limits
from ingestion.extract.tables import markdown_table
from ingestion.extract.tabular.base import RawSheet
from ingestion.extract.tabular.headers import split_header
from ingestion.extract.tabular.islands import Island, Rows, fill_merges, islands

MAX_CELL_CHARS = 20_000


@dataclass(slots=True)
class SheetText:
    """`markdown` is "" for a sheet without anything in it."""

    markdown: str
    warnings: list[str] = field(default_factory=list)


def write_sheet(sheet: RawSheet, *, limits: Limits, chars: int) -> SheetText:
    """At most about `chars` characters of cells are read, and no more rows and columns than the limits allow."""
    rows, warnings = _read_rows(sheet, limits=limits, chars=chars)
    if sheet.names is not None:
        blocks = [*_columns_block(sheet), markdown_table([sheet.names[: limits.max_columns], *(cells for _, cells in rows)])]
    elif sheet.name:
        fill_merges(rows, sheet.merges)
        blocks = [block for island in islands(rows) for block in _island_blocks(island)]
    else:
        preamble, header, _, below = split_header(cells for _, cells in rows)
        blocks = [*preamble, markdown_table([*([header] if header else ()), *below])]
    blocks = [block for block in [*blocks, *sheet.notes] if block]
    if sheet.name and blocks:
        blocks.insert(0, f"## {' '.join(sheet.name.split())}{' (hidden sheet)' if sheet.hidden else ''}")
    return SheetText("\n\n".join(blocks), warnings + sheet.warnings)


def _columns_block(sheet: RawSheet) -> list[str]:
    """What a format that has types says of its columns: all of them, also where not all are shown."""
    if sheet.types is None or sheet.names is None:
        return []
    total = f"{sheet.total_rows:,} rows, " if sheet.total_rows is not None else ""
    table = markdown_table([("column", "type"), *zip(sheet.names, sheet.types, strict=True)])
    return [f"{total}{len(sheet.names):,} columns", table]


def _read_rows(sheet: RawSheet, *, limits: Limits, chars: int) -> tuple[Rows, list[str]]:
    rows: Rows = []
    widest = 0
    more = False
    for number, cells in sheet.rows:
        if len(rows) >= limits.max_rows:
            more = True
            break
        widest = max(widest, len(cells))
        kept = [cell[:MAX_CELL_CHARS] for cell in cells[: limits.max_columns]]
        rows.append((number, kept))
        chars -= sum(map(len, kept))
        if chars < 0:
            break
    where = f"of sheet {sheet.name}" if sheet.name else "of the table"
    warnings = []
    if more:
        of_all = f" of {sheet.total_rows:,}" if sheet.total_rows else ""
        warnings.append(f"Only the first {limits.max_rows:,}{of_all} rows {where} were kept as text.")
    if widest > limits.max_columns:
        warnings.append(f"Only the first {limits.max_columns} of {widest:,} columns {where} were kept as text.")
    return rows, warnings


def _island_blocks(island: Island) -> list[str]:
    rows = [cells for _, cells in island.rows]
    used = [at for at in range(island.width) if any(cells[at] for cells in rows)]
    if len(used) < 2:
        return [text for cells in rows if (text := " ".join(cells[used[0]].split()))] if used else []
    tops = list(itertools.takewhile(lambda cells: sum(map(bool, cells)) == 1, rows))
    if len(tops) == len(rows):
        tops = []
    titles = [" ".join("".join(cells).split()) for cells in tops]
    return [*titles, markdown_table([[cells[at] for at in used] for cells in rows[len(tops) :]])]
