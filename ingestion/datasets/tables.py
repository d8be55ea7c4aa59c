"""A tabular file as datasets: which of its sheets become one, their Parquet in the outbox, and the Markdown that stands for them."""

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from config.errors import ExtractionError
from ingestion.datasets.columns import Column, SchemaDrift, merge_columns
from ingestion.datasets.describe import SAMPLE_ROWS, Described, describe
from ingestion.datasets.names import dataset_name
from ingestion.datasets.parquet import TooWide, Written, partition, rewrite_parquet, write_rows
from ingestion.datasets.profile import profile
from ingestion.datasets.sheets import sheets_of
from ingestion.datasets.wanted import MAX_PARTS, Known, Wanted, named_key
from ingestion.extract.base import Extracted, ExtractedFile, Limits
from ingestion.extract.encodings import clean
from ingestion.extract.tabular.base import Sheet
from ingestion.extract.tabular.markdown import write_sheet
from ingestion.extract.tabular.readers import READERS

LEAST_ROWS = 20  # of a sheet of a workbook: fewer read better as they stand
ALWAYS = frozenset({"csv", "parquet"})
MEDIA_TYPE = "application/vnd.apache.parquet"
MAX_REMARKS = 3
SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Table:
    """A sheet that becomes a dataset, on its way."""

    sheet: str
    remarks: tuple[str, ...]
    written: Written


def read_tables(path: Path, *, format: str, name: str, wanted: Wanted, limits: Limits, outbox: Path) -> Extracted | None:
    """The file with its datasets, each described in `details["span"]` of the Markdown, followed by the sheets that become none as they
    stand; None where there is no dataset in it.

    Raises ExtractionError: what cannot be read, a table that does not fit its dataset, with `mode` tabular a file without one."""
    warnings: list[str] = []
    tables = _find(path, format=format, name=name, wanted=wanted, limits=limits, outbox=outbox, warnings=warnings)
    if not tables and wanted.mode == "tabular":
        raise no_table(name)
    if not tables:
        return None
    texts: list[str] = []
    files: list[ExtractedFile] = []
    length = 0
    for table in tables.values():
        text, made = _finish(table, name=name, alone=len(tables) == 1, wanted=wanted)
        files += [replace(file, details={**file.details, "span": [length, length + len(text)]}) for file in made]
        texts.append(text)
        length += len(text) + len(SEPARATOR)
    if format not in ALWAYS:
        texts += _others(path, format=format, name=name, limits=limits, without=tables.keys(), room=limits.wanted_chars - length)
    return Extracted(
        markdown=SEPARATOR.join(texts),
        title=Path(name).stem,
        media_type=READERS.load(format).media_type,
        metadata={"datasets": list(dict.fromkeys(file.details["dataset"] for file in files))[:100]},
        warnings=warnings,
        files=files,
    )


def no_table(name: str) -> ExtractionError:
    advice = "Its policy says mode: tabular; use auto or text for it, or upload a table."
    return ExtractionError(f"{name} holds no table.", advice=advice, reason="no_table", retires=True)


def _find(path: Path, *, format: str, name: str, wanted: Wanted, limits: Limits, outbox: Path, warnings: list[str]) -> dict[int, Table]:
    """By the place of their sheet."""
    if format == "parquet":
        written = rewrite_parquet(path, name=name, to=outbox / "0.parquet")
        return {0: Table("", (), written)} if written else {}
    found: dict[int, Table] = {}
    with closing(sheets_of(path, format=format, name=name, wanted=wanted, limits=limits)) as sheets:  # type: ignore[attr-defined]
        for number, sheet in enumerate(islice(sheets, limits.max_pages)):
            try:
                table = _write(sheet, always=format in ALWAYS, wanted=wanted, to=outbox / f"{number}.parquet")
            except TooWide as error:
                if wanted.mode == "tabular":
                    raise
                warnings.append(f"No dataset was made: {error.happened}")
                continue
            if table is not None:
                found[number] = table
    return found


def _write(sheet: Sheet, *, always: bool, wanted: Wanted, to: Path) -> Table | None:
    rows = iter(sheet.rows)
    first = list(islice(rows, LEAST_ROWS))
    named = bool(sheet.header) or not wanted.header
    if wanted.mode != "tabular":
        # Without a header a single line may be one without rows, and a single column is a list.
        is_table = named or (len(first) > 1 and max(map(len, first)) > 1)
        if not is_table or not (always or (named and len(first) == LEAST_ROWS)):
            return None
    written = write_rows(sheet.header, chain(first, rows), to=to)
    if written is None:
        return None
    hidden = ("Its sheet is hidden.",) if sheet.hidden else ()
    return Table(sheet.name, (*hidden, *sheet.preamble[:MAX_REMARKS]), written)


def _finish(table: Table, *, name: str, alone: bool, wanted: Wanted) -> tuple[str, list[ExtractedFile]]:
    """(description, Parquet files) of a dataset, with those of its other files in mind."""
    base = dataset_name(wanted.name or Path(name).stem)
    label = base if alone or not table.sheet else dataset_name(f"{base}_{table.sheet}")
    key = named_key(label, scope=wanted.scope) if wanted.name else f"file:{wanted.key}:{table.sheet}"
    others = wanted.known.get(key) or Known([], 0, 0, 0)
    written = table.written
    try:
        columns = merge_columns(others.columns, written.columns)
    except SchemaDrift as drift:
        raise drifted(name, label, drift) from drift
    text = _describe(table, columns, others, label=label, name=name, wanted=wanted)
    columns_made = [column.to_json() for column in written.columns]
    details = {"dataset": label, "key": key, "replaces": wanted.replaces, "sheet": table.sheet, "columns": columns_made}
    parts = partition(written, by=wanted.partition_by, name=name)
    if others.parts + len(parts) > MAX_PARTS:
        advice = "Join files before you upload them, or give this one another table.name."
        raise ExtractionError(f"Dataset “{label}” is in {MAX_PARTS:,} parts already.", advice=advice, reason="too_many_parts", retires=True)
    files = [
        ExtractedFile(
            name=f"{label}.parquet", path=part.path.name, media_type=MEDIA_TYPE, kind="dataset",
            details={**details, "rows": part.rows, "partition": part.values},
        )
        for part in parts
    ]  # fmt: skip
    return text, files


def drifted(name: str, dataset: str, drift: SchemaDrift) -> ExtractionError:
    advice = "Correct the file, or give it another table.name."
    return ExtractionError(f"{name} does not fit dataset “{dataset}”: {drift}.", advice=advice, reason="schema_drift", retires=True)


def _describe(table: Table, columns: list[Column], others: Known, *, label: str, name: str, wanted: Wanted) -> str:
    written = table.written
    found = profile(written.path, written.columns, rows=SAMPLE_ROWS)
    place = {column.name.casefold(): number for number, column in enumerate(written.columns)}
    order = [place.get(column.name.casefold()) for column in columns]
    described = Described(
        name=label,
        origin=f"sheet “{table.sheet}” of {name}" if table.sheet else name,
        rows=others.rows + written.rows,
        files=others.files + 1,
        columns=columns,
        values={} if others.files else found.values,
        sample=[[None if at is None else row[at] for at in order] for row in found.sample],
        remarks=table.remarks,
    )
    # Cleaned as the whole Markdown will be, so that its span holds.
    return describe(described, fits=wanted.fits, finish=lambda text: clean(text)[0].strip())


def _others(path: Path, *, format: str, name: str, limits: Limits, without: Collection[int], room: int) -> Iterator[str]:
    with closing(READERS.load(format)().sheets(path, name=name, limits=limits, shown=True)) as sheets:  # type: ignore[attr-defined]
        for number, sheet in enumerate(islice(sheets, limits.max_pages)):
            if room <= 0:
                return
            if number not in without and (text := write_sheet(sheet, limits=limits, chars=room).markdown):
                room -= len(text)
                yield text
