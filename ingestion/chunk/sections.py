from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from ingestion.chunk.blocks import HEADING, Block, parse_blocks


class Section(NamedTuple):
    """Blocks under one heading. Headings without text between them begin a section together, whose path is that of the last."""

    path: tuple[str, ...]
    blocks: list[Block]


def split_sections(text: str) -> list[Section]:
    sections: list[Section] = []
    stack: list[tuple[int, str]] = []
    previous = None
    for block in parse_blocks(text):
        is_heading = block.kind == HEADING
        if is_heading:
            while stack and stack[-1][0] >= block.level:
                stack.pop()
            stack.append((block.level, block.title))
        path = tuple(title for _, title in stack if title)
        if previous is None or (is_heading and previous != HEADING):
            sections.append(Section(path, [block]))
        else:
            sections[-1].blocks.append(block)
            if is_heading:
                sections[-1] = Section(path, sections[-1].blocks)
        previous = block.kind
    return sections


class HeadingPaths:
    """The heading path of any position of a text."""

    def __init__(self, text: str) -> None:
        sections = split_sections(text)
        self._starts = [section.blocks[0].start for section in sections]
        self._paths = [section.path for section in sections]

    def at(self, position: int) -> tuple[str, ...]:
        # The first block may begin with the indentation that a passage has lost, never the other way round.
        index = bisect_right(self._starts, position) - 1
        return self._paths[index] if index >= 0 else ()
