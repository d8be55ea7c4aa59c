"""Groups of units made passages: stripped, overlapped, and checked with the tokenizer's own count."""

from __future__ import annotations

from collections.abc import Iterator

from ingestion.chunk import blocks as md
from ingestion.chunk.base import ChunkSettings, Passage
from ingestion.chunk.packing import Groups
from ingestion.chunk.prose import line_starts, sentence_starts, whole_character
from ingestion.chunk.ruler import CHARS_PER_TOKEN, Ruler
from ingestion.chunk.units import GLUE, ITEM, Units

_RUNNING = frozenset({md.PARAGRAPH, md.LIST, md.QUOTE, md.CODE})


def make_passages(ruler: Ruler, units: Units, groups: Groups, settings: ChunkSettings) -> list[Passage]:
    found: list[Passage] = []
    previous = None
    for first, last in groups.spans():
        start, end = strip_span(ruler.text, units.starts[first], units.end(last))
        if start == end:
            continue
        path = units.paths[units.sections[first]] if units.paths else ()
        header = units.headers.get(first)
        overlap = start
        if previous is not None and settings.overlap_tokens and _overlaps(units, first):
            room = min(settings.overlap_tokens, settings.target_tokens - ruler.size(start, end))
            floor = _block_start(units, previous, first, room)
            overlap = _overlap_start(ruler, floor, start, room, lines=units.kinds[first] == md.CODE)
        found.extend(_checked(ruler, overlap, start, end, settings.target_tokens, path, header))
        previous = first
    return found


def strip_span(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its ends."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, max(start, start + len(piece.strip()))


def _overlaps(units: Units, first: int) -> bool:
    """Whether the passage that begins here repeats the end of what precedes it.

    It does where running text or a code block is cut inside. Between two whole paragraphs nothing was cut, and a repeated sentence would
    only make an edit of one passage an edit of two.
    """
    cut = units.cuts[first][0]
    if units.sections[first] != units.sections[first - 1] or not GLUE < cut <= ITEM:
        return False
    return units.kinds[first] in _RUNNING


def _block_start(units: Units, previous: int, first: int, room: int) -> int:
    """Where the cut block begins in the previous passage, or as far back as an overlap may reach."""
    index = first - 1
    furthest = units.starts[first] - room * CHARS_PER_TOKEN
    while index > previous and units.starts[index] > furthest and GLUE < units.cuts[index][0] <= ITEM:
        index -= 1
    return units.starts[index]


def _overlap_start(ruler: Ruler, floor: int, start: int, room: int, *, lines: bool) -> int:
    """The first sentence (line, in code) from which no more than `room` tokens lie before `start`; `start` itself if there is none."""
    if room <= 0:
        return start
    floor = max(floor, start - room * CHARS_PER_TOKEN)
    boundaries = list(line_starts(ruler.text, floor, start) if lines else sentence_starts(ruler.text, floor, start))
    chosen = start
    for boundary in reversed(boundaries):
        if ruler.size(boundary, start) > room:
            break
        chosen = boundary
    return strip_span(ruler.text, chosen, start)[0]


def _checked(
    ruler: Ruler, overlap: int, start: int, end: int, target: int, path: tuple[str, ...], header: tuple[int, int] | None
) -> Iterator[Passage]:
    """The passage, without its overlap or in halves where the tokenizer finds more than was measured."""
    if overlap < start:
        tokens = ruler.exact(overlap, end)
        if tokens <= target:
            yield Passage(overlap, end, path, tokens, header)
            return
    waiting = [(start, end)]
    while waiting:
        left, right = waiting.pop()
        left, right = strip_span(ruler.text, left, right)
        if left == right:
            continue
        tokens = ruler.exact(left, right)
        if tokens <= target or right - left == 1:
            yield Passage(left, right, path, tokens, header if left == start else None)
            continue
        middle = _middle(ruler.text, left, right)
        waiting += [(middle, right), (left, middle)]


def _middle(text: str, start: int, end: int) -> int:
    middle = (start + end) // 2
    for mark in ("\n", " "):
        found = text.rfind(mark, (start + middle) // 2 + 1, middle)
        if found > start:
            return found
    return max(start + 1, whole_character(text, start, middle))
