"""Which delimiter and quotes a delimited file has, found by reading its first lines with each and looking which gives a table."""

import csv
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ingestion.extract.tabular.text_stream import MAX_LINE_CHARS

DELIMITERS = (",", ";", "\t", "|")
# Only where none of the usual ones gives a table.
RARE_DELIMITERS = (":", "^", "~", "\x1f", "\x01")
# What no text holds: the file has one column, and commas in it are commas.
NO_DELIMITER = "\x1e"
SAMPLE_LINES = 200
SAMPLE_CHARS = 256 * 1024
# A quoted cell of more lines, or characters, has lost its closing quote.
MAX_CELL_LINES = 1_000
MAX_CELL_CHARS = 512 * 1024
SEPARATOR_LINE = "sep="


@dataclass(frozen=True, slots=True)
class Dialect:
    delimiter: str
    quoted: bool = True
    escaped: bool = False
    """Quotes inside a cell are written \\" and not "" """


def find_dialect(sample: Sequence[str], *, suffix: str = "") -> Dialect:
    """`sample` are the first lines of the file; `suffix` of its name decides where the lines leave it open."""
    stated = separator_line(sample[0]) if sample else None
    text = "".join(sample)
    escaped = '\\"' in text and '""' not in text.replace('\\""', "")
    if stated:
        return Dialect(stated, escaped=escaped)
    preferred = {"tsv": "\t", "tab": "\t", "psv": "|"}.get(suffix, ",")
    for candidates in (DELIMITERS, RARE_DELIMITERS):
        scored = [(_score(sample, Dialect(mark, escaped=escaped)), mark == preferred, mark) for mark in candidates if mark in text]
        if scored and max(scored)[0] > 0:
            return Dialect(max(scored)[2], escaped=escaped)
    return Dialect(NO_DELIMITER if preferred in text else preferred, escaped=escaped)


def separator_line(line: str) -> str | None:
    """The delimiter of a first line `sep=;`, which Excel writes and hides."""
    bare = line.strip('\r\n\ufeff "')
    return bare[len(SEPARATOR_LINE) :] or "\t" if bare.lower().startswith(SEPARATOR_LINE) and len(bare) <= len(SEPARATOR_LINE) + 1 else None


def records(source: Iterator[str], dialect: Dialect) -> Iterator[list[str]]:
    """Cells of each record. One whose quote is never closed is taken as it stands, line by line, so that it does not swallow the rest."""
    feed = _Feed(source)
    reader = _reader(feed, dialect)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield from _as_it_stands(feed.give_back_all_but_first(), dialect)
            reader = _reader(feed, dialect)
        feed.start_record()


def _as_it_stands(line: str, dialect: Dialect) -> Iterator[list[str]]:
    """A line whose quotes are wrong: where they come in pairs, cells may be written "like" this; else they are quotes like any letter."""
    paired = line.count('"') % 2 == 0
    return _reader(iter([line]), replace(dialect, quoted=paired), strict=False)


class _Feed:
    """Lines for the reader, which are kept until their record is complete."""

    def __init__(self, source: Iterator[str]) -> None:
        self._source = source
        self._given_back: deque[str] = deque()
        self._kept: list[str] = []
        self._chars = 0

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        if len(self._kept) >= MAX_CELL_LINES or self._chars >= MAX_CELL_CHARS:
            raise StopIteration  # which a strict reader inside of a cell calls an error
        line = self._given_back.popleft() if self._given_back else next(self._source)
        self._kept.append(line)
        self._chars += len(line)
        return line

    def start_record(self) -> None:
        self._kept.clear()
        self._chars = 0

    def give_back_all_but_first(self) -> str:
        first, *rest = self._kept
        self._given_back.extendleft(reversed(rest))
        return first


def _reader(source: Iterator[str], dialect: Dialect, *, strict: bool = True) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_CELL_CHARS + MAX_LINE_CHARS)
    if not dialect.quoted:
        return iter(csv.reader(source, delimiter=dialect.delimiter, quoting=csv.QUOTE_NONE))
    escape = "\\" if dialect.escaped else None
    return iter(csv.reader(source, delimiter=dialect.delimiter, doublequote=not dialect.escaped, escapechar=escape, strict=strict))


def _score(sample: Sequence[str], dialect: Dialect) -> float:
    """0 where there is no table; the more lines have one number of cells, and the fewer cells still hold a delimiter, the better."""
    rows = [row for row in records(iter(sample), dialect) if any(row)]
    widths = Counter(map(len, rows))
    if widths.total() - widths[1] <= widths[1]:
        return 0.0
    width, times = max(widths.items(), key=lambda item: (item[1] * (item[0] - 1), item[0]))
    others = [mark for mark in DELIMITERS[1:] if mark != dialect.delimiter]
    cells = sum(map(len, rows))
    uncut = sum(any(mark in cell for mark in others) for row in rows for cell in row)
    return (times / len(rows)) ** 2 * (1 - 1 / (width + 1)) * (1 - uncut / cells)
