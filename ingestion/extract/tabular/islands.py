"""A sheet is paper: tables and remarks stand on it below and beside each other, with empty rows and columns between them."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingestion.extract.tabular.base import Merge
from ingestion.extract.tabular.headers import split_header

Cells = list[str]
Rows = list[tuple[int, Cells]]

MAX_FILLED_CELLS = 100_000
MAX_DEPTH = 8
# So many empty columns between two tables that begin and end in the same rows show that they are two.
WIDE_GAP = 2


@dataclass(frozen=True, slots=True)
class Island:
    """A rectangle of the sheet with what stands in it; rows are as wide as the rectangle."""

    left: int
    right: int
    rows: Rows

    @property
    def width(self) -> int:
        return self.right - self.left + 1


def fill_merges(rows: Rows, merges: Sequence[Merge]) -> None:
    """Merged cells say their text in each of their rows and columns, so that each can be read by itself; the title of a row does not."""
    places = {number: place for place, (number, _) in enumerate(rows)}
    width = max((len(cells) for _, cells in rows), default=0)
    room = MAX_FILLED_CELLS
    for merge in merges:
        first = places.get(merge.top)
        if first is None or merge.left >= len(rows[first][1]):
            continue
        text = rows[first][1][merge.left]
        right = min(merge.right, width - 1)
        if not text or (merge.left < right and sum(map(bool, rows[first][1])) == 1):
            continue
        for number, cells in rows[first : first + merge.bottom - merge.top + 1]:
            if number > merge.bottom:
                break
            room -= right - merge.left + 1
            if room < 0:
                return
            cells.extend([""] * (right + 1 - len(cells)))
            cells[merge.left : right + 1] = [cell or text for cell in cells[merge.left : right + 1]]


def islands(rows: Rows) -> list[Island]:
    """From top to bottom, then from left to right."""
    width = max((len(cells) for _, cells in rows), default=0)
    padded = [(number, cells + [""] * (width - len(cells))) for number, cells in rows]
    return _joined(_cut(padded, 0, 0)) if width else []


def _cut(rows: Rows, left: int, depth: int) -> Iterator[Island]:
    for band in _bands(rows):
        yield from _cut_columns(band, left, depth)


def _cut_columns(band: Rows, left: int, depth: int) -> Iterator[Island]:
    spans = _spans(band)
    if not spans:
        return
    pieces = [(start, end, _between(band, start, end)) for start, end in spans]
    if len(pieces) > 1 and depth < MAX_DEPTH and _stand_alone(pieces):
        for start, _, piece in pieces:
            yield from _cut(piece, left + start, depth + 1)
        return
    start, end = spans[0][0], spans[-1][1]
    yield Island(left + start, left + end, _between(band, start, end))


def _bands(rows: Rows) -> Iterator[Rows]:
    band: Rows = []
    for number, cells in rows:
        if not any(cells):
            continue
        if band and number != band[-1][0] + 1:
            yield band
            band = []
        band.append((number, cells))
    if band:
        yield band


def _spans(band: Rows) -> list[tuple[int, int]]:
    """(first, last) of the columns that stand together."""
    used = sorted({at for _, cells in band for at, cell in enumerate(cells) if cell})
    spans: list[tuple[int, int]] = []
    for at in used:
        if spans and at == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], at)
        else:
            spans.append((at, at))
    return spans


def _between(band: Rows, start: int, end: int) -> Rows:
    return [(number, cut) for number, cells in band if any(cut := cells[start : end + 1])]


def _stand_alone(pieces: Sequence[tuple[int, int, Rows]]) -> bool:
    """Whether they are tables beside each other, and not one table with an empty column or a remark at its side."""
    if any(end == start or len(rows) < 2 for start, end, rows in pieces):
        return False
    extents = {(rows[0][0], rows[-1][0]) for _, _, rows in pieces}
    gaps = [after[0] - before[1] - 1 for before, after in itertools.pairwise(pieces)]
    return len(extents) > 1 or min(gaps) >= WIDE_GAP


def _joined(found: Iterator[Island]) -> list[Island]:
    """Empty rows inside of a table part it as little as they part a person's reading of it."""
    kept: list[Island] = []
    for island in found:
        before = kept[-1] if kept else None
        if before is not None and _continues(before, island):
            shift = island.left - before.left
            before.rows.extend((number, ([""] * shift + cells + [""] * before.width)[: before.width]) for number, cells in island.rows)
        else:
            kept.append(island)
    return kept


def _continues(before: Island, island: Island) -> bool:
    if before.width < 2 or island.width < 2 or len(before.rows) < 2 or island.rows[0][0] <= before.rows[-1][0]:
        return False
    if island.left < before.left or island.right > before.right:
        return False
    kind = split_header(iter([list(cells) for _, cells in island.rows]))[2]
    return kind == "none"
