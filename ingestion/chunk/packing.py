"""Units joined to passages so that an edit moves no boundary but its neighbours.

Filling passages from the start would shift every later boundary when a paragraph grows. Instead each boundary between two units gets a
priority from what it would break and from a hash of the text that follows it, and boundaries are removed in that order while both sides
together fit. An edit then changes only what it touches: an effect travels on only along boundaries of rising priority, which ends at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from ingestion.chunk.ruler import Ruler
from ingestion.chunk.units import BLOCK, ITEM, SECTION, SENTENCE, Units

# About every third passage ends at a boundary of this kind that is never removed: a fire-break for what little does travel.
_ANCHORS = frozenset({SENTENCE, ITEM, BLOCK})


@dataclass(slots=True)
class Groups:
    """Runs of neighbouring units: `last[first unit] = last unit` and back, with their sizes at their first units."""

    last: list[int]
    first: list[int]
    sizes: list[int]

    def join(self, boundary: int) -> None:
        left, last = self.first[boundary - 1], self.last[boundary]
        self.sizes[left] += self.sizes[boundary]
        self.last[left] = last
        self.first[last] = left
        self.last[boundary] = -1

    def spans(self) -> Iterable[tuple[int, int]]:
        """(first unit, last unit) of each group, in order."""
        index = 0
        while index < len(self.last):
            yield index, self.last[index]
            index = self.last[index] + 1


def pack(ruler: Ruler, units: Units, *, limit: int) -> Groups:
    """Join units within their sections up to `limit` tokens, more precious neighbours first."""
    count = len(units.starts)
    sizes = [ruler.size(units.starts[index], units.end(index)) for index in range(count)]
    groups = Groups(list(range(count)), list(range(count)), sizes)
    boundaries = []
    for index in range(1, count):
        cut, rank = units.cuts[index]
        if cut != SECTION:
            mark = _hash(ruler.text, units.starts[index], units.end(index))
            if cut not in _ANCHORS or mark < (1 - min(0.25, 0.4 * sizes[index] / limit)) * 2**32:
                boundaries.append((cut, rank, mark, index))
    boundaries.sort()
    for _, _, _, boundary in boundaries:
        if groups.sizes[groups.first[boundary - 1]] + groups.sizes[boundary] <= limit:
            groups.join(boundary)
    return groups


def fold(ruler: Ruler, units: Units, groups: Groups, *, target: int, min_chars: int) -> None:
    """Join groups shorter than `min_chars` to a neighbour, in their own section first, then across sections that are kin."""
    text = ruler.text
    lengths = {first: len(text[units.starts[first] : units.end(last)].strip()) for first, last in groups.spans()}
    candidates = []
    previous = None
    for first in lengths:
        if previous is not None and min(lengths[previous], lengths[first]) < min_chars:
            kin = _kinship(units, first)
            if kin is not None:
                candidates.append((kin, _hash(text, units.starts[first], units.end(first)), first))
        previous = first
    candidates.sort()
    for _, _, boundary in candidates:
        left = groups.first[boundary - 1]
        short = lengths[left] < min_chars or lengths[boundary] < min_chars
        if short and groups.sizes[left] + groups.sizes[boundary] <= target:
            groups.join(boundary)
            lengths[left] += lengths[boundary]


def _kinship(units: Units, boundary: int) -> int | None:
    """0 within a section, 1 between sections of which one holds the other or that have one parent, None otherwise."""
    left, right = units.sections[boundary - 1], units.sections[boundary]
    if left == right:
        return 0
    one, other = units.paths[left], units.paths[right]
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter] or one[:-1] == other[:-1]:
        return 1
    return None


def _hash(text: str, start: int, end: int) -> int:
    """Of both ends of a unit: stays when its middle is edited, differs where many units begin alike."""
    ends = text[start : min(end, start + 40)] + text[max(start, end - 40) : end]
    # A checksum of similar texts runs in steps; the multiplication spreads them.
    return (zlib.crc32(ends.encode("utf-8", "surrogatepass")) * 0x9E3779B1) & 0xFFFFFFFF
