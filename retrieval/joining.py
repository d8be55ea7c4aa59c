"""Pieces of one Markdown text, put together by where they stand so that nothing is said twice. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """Chunks `first` to `last` of a document, with the places (in the ranked list) of the hits among them, best first."""

    first: int
    last: int
    places: tuple[int, ...]


def join_pieces(pieces: Sequence[Piece]) -> Piece:
    """One text. What two pieces share stands once; white space between them is a line break, or an empty line where there was more."""
    ordered = sorted(pieces, key=lambda piece: (piece.start, -piece.end))
    start, end, text = ordered[0].start, ordered[0].end, ordered[0].text
    for piece in ordered[1:]:
        if piece.end <= end:
            continue
        if piece.start <= end:
            text += piece.text[end - piece.start :]
        else:
            text += ("\n" if piece.start - end == 1 else "\n\n") + piece.text
        end = piece.end
    return Piece(start, end, text)


def merge_windows(hits: Sequence[tuple[int, int, int]]) -> list[Window]:
    """Windows of one document's hits, each (place, ordinal, neighbours); windows that share a chunk become one."""
    merged: list[Window] = []
    for place, ordinal, around in sorted(hits, key=lambda hit: hit[1]):
        first, last = max(0, ordinal - around), ordinal + around
        before = merged[-1] if merged else None
        if before is not None and first <= before.last:
            merged[-1] = Window(before.first, max(before.last, last), tuple(sorted((*before.places, place))))
        else:
            merged.append(Window(first, last, (place,)))
    return merged
