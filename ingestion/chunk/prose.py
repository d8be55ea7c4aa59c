"""Where running text may be cut: sentences, lines, clauses, and characters when there is nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

import semchunk

from ingestion.chunk.ruler import Ruler

# The look-behind is one character wide, so a scan is linear whatever the text is.
_SENTENCE_END = re.compile(r"(?<=[.!?…\"'”’»)\]।۔؟།။])\s+|[。！？｡]")
_TERMINATORS = frozenset(".!?…।۔؟།။")
_CLOSERS = "\"'”’»)]」』）】"
# semchunk's own depth grows with the number of different runs of white space; a window bounds it.
_WINDOW = 16_000
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def sentence_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Starts of all sentences after the first between two positions."""
    for match in _SENTENCE_END.finditer(text, start, end):
        at = match.end()
        if text[match.start()].isspace():
            before = text[max(start, match.start() - 4) : match.start()].rstrip(_CLOSERS)
            if before[-1:] not in _TERMINATORS:
                continue
        else:
            while at < end and at - match.end() < 4 and (text[at] in _CLOSERS or text[at].isspace()):
                at += 1
        if start < at < end:
            yield at


def line_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Starts of all lines after the first between two positions."""
    at = text.find("\n", start, end) + 1
    while 0 < at < end:
        yield at
        at = text.find("\n", at, end) + 1


def piece_starts(ruler: Ruler, start: int, end: int, limit: int) -> list[int]:
    """Starts of pieces that each fit `limit`, the first included; clauses and words first (semchunk), characters where there are none."""
    starts: list[int] = []
    at = start
    while at < end:
        stop = window_end(ruler.text, at, end, _WINDOW)
        density = ruler.size(at, stop) / (stop - at)
        characters = max(1, int(limit / 2 / density)) if density else stop - at
        _, spans = semchunk.chunk(ruler.text[at:stop], characters, len, memoize=False, offsets=True)
        edges = [at, *(at + begin for begin, _ in spans[1:]), stop]
        for left, right in pairwise(edges):
            while left < right:
                starts.append(left)
                if ruler.fits(left, right, limit):
                    break
                left = whole_character(ruler.text, left, ruler.reach(left, right, limit))
        at = stop
    return starts


def whole_character(text: str, start: int, at: int) -> int:
    """`at`, or a little before it where the cut would part a letter from its marks or the parts of an emoji."""
    back = at
    while back > start and at - back < 16 and back < len(text) and _continues(text, back):
        back -= 1
    return back if back > start and at - back < 16 else at


def _continues(text: str, at: int) -> bool:
    character = text[at]
    if character < "\u0300":
        return False
    if character in _JOINERS or text[at - 1] == "\u200d" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return True
    return unicodedata.category(character) in ("Mn", "Mc", "Me")


def window_end(text: str, start: int, end: int, width: int) -> int:
    """At most `width` characters on, after a line or a word where there is one in the second half."""
    if end - start <= width:
        return end
    for mark in ("\n\n", "\n", " "):
        found = text.rfind(mark, start + width // 2, start + width)
        if found > 0:
            return found + len(mark)
    return whole_character(text, start, start + width)
