"""CSV, TSV and their kin, read as a person would: delimiter, quotes and encoding are found out, ragged rows kept."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ingestion.extract.base import Limits
from ingestion.extract.sniff import extension
from ingestion.extract.tabular.base import RawSheet
from ingestion.extract.tabular.dialects import SAMPLE_CHARS, SAMPLE_LINES, find_dialect, records, separator_line
from ingestion.extract.tabular.text_stream import find_encoding, lines, open_text


class DelimitedReader:
    media_type = "text/csv"

    def sheets(self, path: Path, *, name: str, limits: Limits, shown: bool) -> Iterator[RawSheet]:
        encoding, warnings = find_encoding(path)
        with open_text(path, encoding=encoding) as stream:
            source = lines(stream)
            sample = _sample(source)
            dialect = find_dialect(sample, suffix=extension(name))
            if sample and separator_line(sample[0]):
                sample = sample[1:]
            rows = records(itertools.chain(sample, source), dialect)
            with closing(_numbered(rows, shown=shown)) as numbered:
                yield RawSheet(name="", rows=numbered, warnings=warnings)


def _sample(source: Iterator[str]) -> list[str]:
    sample: list[str] = []
    size = 0
    for line in itertools.islice(source, SAMPLE_LINES):
        sample.append(line)
        size += len(line)
        if size > SAMPLE_CHARS:
            break
    return sample


def _numbered(rows: Iterator[list[str]], *, shown: bool) -> Iterator[tuple[int, list[Any]]]:
    for number, row in enumerate(rows):
        end = len(row)
        while end and not row[end - 1].strip():
            end -= 1
        if end:
            yield number, row[:end] if shown else [cell if cell.strip() else None for cell in row[:end]]
