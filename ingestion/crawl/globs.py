"""Globs on the path of an address, all patterns of a source matched at once in time linear in the path.

`*` stays inside a segment, `**` crosses segments, everything else is itself. `/a/*` starts at the root; a pattern without a slash in
front may start at any folder, so `*.pdf` is a PDF anywhere. `/archive/**` is also `/archive` itself, and a slash at the end of a path
or a pattern says nothing, because the address of a page is known without it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from ingestion.crawl.urls import spell

_ONE = "*"
_MANY = "**"


@dataclass(slots=True)
class Globs:
    """A state machine whose states are the bits of one number (Shift-And), because regular expressions with many stars backtrack."""

    patterns: tuple[str, ...]
    _literal: dict[str, int] = field(default_factory=dict)
    _in_segment: int = 0  # states that stay on any character but a slash
    _anywhere: int = 0  # states that stay on any character
    _skip_one: int = 0  # states of a star, which may match nothing
    _skip_two: int = 0  # states of a whole segment `/**`, which may match nothing
    _starts: int = 0
    _ends: dict[int, str] = field(default_factory=dict)
    _end_states: int = 0

    def __post_init__(self) -> None:
        position = 0
        for pattern in self.patterns:
            position = self._add(pattern, position)

    def match(self, path: str) -> str | None:
        """The first pattern that matches the whole of a path in the spelling of `path_of`."""
        states = self._closed(self._starts)
        for character in path.rstrip("/"):
            if not states:
                return None
            staying = self._anywhere if character == "/" else self._anywhere | self._in_segment
            states = self._closed((states & self._literal.get(character, 0)) << 1 | states & staying)
        matched = states & self._end_states
        return self._ends[matched & -matched] if matched else None

    def _closed(self, states: int) -> int:
        while True:
            more = states | (states & self._skip_one) << 1 | (states & self._skip_two) << 2
            if more == states:
                return states
            states = more

    def _add(self, pattern: str, position: int) -> int:
        pieces = _pieces_of(pattern)
        self._starts |= 1 << position
        for index, piece in enumerate(pieces):
            state = 1 << position + index
            if piece == _ONE:
                self._in_segment |= state
                self._skip_one |= state
            elif piece == _MANY:
                self._anywhere |= state
                self._skip_one |= state
            else:
                self._literal[piece] = self._literal.get(piece, 0) | state
                if piece == "/" and pieces[index + 1 : index + 3] in ([_MANY], [_MANY, "/"]):
                    self._skip_two |= state
        end = position + len(pieces)
        self._end_states |= 1 << end
        self._ends[1 << end] = pattern
        return end + 1


def _pieces_of(pattern: str) -> list[str]:
    text = pattern.rstrip("/")
    if text and not text.startswith("/"):
        text = f"/{text}" if text.startswith("**") else f"/**/{text}"
    segments: list[str] = []
    for segment in text.split("/"):
        if segment != _MANY or segments[-1:] != [_MANY]:
            segments.append(segment)
    return list(_pieces("/".join(segments)))


def _pieces(text: str) -> Iterator[str]:
    for is_star, run in groupby(text, key=lambda character: character == "*"):
        characters = "".join(run)
        if is_star:
            yield _ONE if len(characters) == 1 else _MANY
        else:
            yield from spell(characters)
