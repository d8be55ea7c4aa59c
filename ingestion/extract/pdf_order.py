"""Reading order. pdfium keeps the order in which a page was drawn, which is nearly always the order to read it in; two ways in which it
is not are told from where the lines stand: rows drawn across two columns, and lines drawn from the bottom up."""

from collections.abc import Sequence
from itertools import pairwise

from ingestion.extract.pdf_lines import Box, Line, PageText

MIN_ROWS = 6
MAX_PIECES = 3_000
# A gap between columns lies in this part of the text's width, is at least so many points wide, and is crossed by few rows only.
GUTTER_ZONE = (0.3, 0.7)
MIN_GUTTER = 8
MAX_CROSSED = 0.12
# What stands in two columns as prose fills them; what fills them less is a table.
MIN_FILLED = 0.6
MIN_LETTERS = 18
# Changes from one side to the other, in rows, and lines that go upwards, in lines, from which the order is wrong.
CHANGES = 0.6
UPWARDS = 0.8


def in_reading_order(lines: list[Line], page: PageText) -> list[Line]:
    if len(lines) < 2:
        return lines
    if len(lines) >= MIN_ROWS and not any(line.turn for line in lines) and (gutter := _crossed_gutter(lines, page)) is not None:
        return _by_columns(_split(lines, gutter, page), gutter)
    return _downwards(lines)


def _downwards(lines: list[Line]) -> list[Line]:
    """Lines of one direction that were drawn from the bottom up, turned round."""
    ordered: list[Line] = []
    start = 0
    for index in range(1, len(lines) + 1):
        if index == len(lines) or lines[index].turn != lines[start].turn:
            ordered += _turned_round(lines[start:index])
            start = index
    return ordered


def _turned_round(lines: list[Line]) -> list[Line]:
    steps = [other.middle - line.middle for line, other in pairwise(lines)]
    upwards = sum(step > 0.5 * lines[0].size for step in steps)
    return sorted(lines, key=lambda line: -line.middle) if steps and upwards >= UPWARDS * len(steps) and upwards else lines


def _crossed_gutter(lines: Sequence[Line], page: PageText) -> float | None:
    """The middle of the gap between two columns of prose whose rows were drawn across it; None for every other page."""
    left, right = min(line.box[0] for line in lines), max(line.box[2] for line in lines)
    if sum(line.width > GUTTER_ZONE[1] * (right - left) for line in lines) < MIN_ROWS - 1:
        return None  # rows across both columns are wide
    pieces = [box for box in page.rects(most=MAX_PIECES) if box[2] > box[0]]
    gutter = _gutter(pieces, left, right)
    if gutter is None:
        return None
    sides = [box[0] >= gutter for box in pieces if box[2] <= gutter or box[0] >= gutter]
    rows = len({round(box[1]) for box in pieces})
    changes = sum(one != other for one, other in pairwise(sides))
    return gutter if changes >= CHANGES * rows and _is_prose(pieces, left, gutter) and _is_prose(pieces, gutter, right) else None


def _gutter(pieces: Sequence[Box], left: float, right: float) -> float | None:
    """The middle of the widest strip near the middle of the page that few pieces of text cross."""
    width = int(right - left) + 1
    crossed = [0] * (width + 1)
    for box in pieces:
        crossed[max(0, min(width, int(box[0] - left)))] += 1
        crossed[max(0, min(width, int(box[2] - left) + 1))] -= 1
    most = MAX_CROSSED * len({round(box[1]) for box in pieces})
    best, start, covering = (0, 0), None, 0
    for column in range(width):
        covering += crossed[column]
        inside = GUTTER_ZONE[0] * width <= column <= GUTTER_ZONE[1] * width and covering <= most
        if inside and start is None:
            start = column
        elif not inside and start is not None:
            best, start = max(best, (column - start, start)), None
    return left + best[1] + best[0] / 2 if best[0] >= MIN_GUTTER else None


def _is_prose(pieces: Sequence[Box], left: float, right: float) -> bool:
    """Whether the pieces between two edges fill their rows as lines of prose do."""
    rows: dict[int, float] = {}
    inner = [box for box in pieces if box[0] >= left - 1 and box[2] <= right + 1]
    if len(inner) < MIN_ROWS - 1:
        return False
    width = max(box[2] for box in inner) - min(box[0] for box in inner)
    for box in inner:
        rows[round(box[1] / 2)] = rows.get(round(box[1] / 2), 0) + box[2] - box[0]
    height = sum(box[3] - box[1] for box in inner) / len(inner)
    filled = sorted(rows.values())[len(rows) // 2]
    return filled >= MIN_FILLED * width and filled >= MIN_LETTERS * height / 2


def _split(lines: Sequence[Line], gutter: float, page: PageText) -> list[Line]:
    parts: list[Line] = []
    for line in lines:
        cut = _cut(line, gutter, page) if line.box[0] < gutter < line.box[2] else None
        halves = [line] if cut is None else [page.part(line, line.first, cut), page.part(line, cut, line.end)]
        parts += [half for half in halves if half is not None]
    return parts


def _cut(line: Line, gutter: float, page: PageText) -> int | None:
    """The first character right of the gutter, if the line has a gap there and all after it are right of it as well."""
    cut, last = None, line.box[0]
    for char in range(line.first, line.end):
        if not page.char(char).strip():
            continue
        left, _, right, _ = page.box(char)
        if left < gutter < right or (cut is not None and right <= gutter):
            return None
        if cut is None and left >= gutter:
            if left - last < MIN_GUTTER / 2:
                return None
            cut = char
        last = right
    return cut


def _by_columns(lines: Sequence[Line], gutter: float) -> list[Line]:
    """From the top: lines across both columns end a band; inside one the left column comes first."""
    ordered: list[Line] = []
    band: tuple[list[Line], list[Line]] = ([], [])
    for line in sorted(lines, key=lambda line: -line.middle):
        if line.box[0] < gutter < line.box[2]:
            ordered += [*band[0], *band[1], line]
            band = ([], [])
        else:
            band[line.box[0] >= gutter].append(line)
    return [*ordered, *band[0], *band[1]]
