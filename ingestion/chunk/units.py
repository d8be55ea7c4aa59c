"""A document as units that a passage is made of: blocks, and parts of those blocks that are too long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ingestion.chunk import blocks as md
from ingestion.chunk.blocks import Block
from ingestion.chunk.prose import line_starts, piece_starts, sentence_starts
from ingestion.chunk.ruler import Ruler
from ingestion.chunk.sections import split_sections

# What a cut before a unit would break, most precious first: units are joined in this order.
GLUE, PIECE, LINE, SENTENCE, ITEM, INTRO, BLOCK, SECTION = range(8)

Cut = tuple[int, int, int]  # start, kind of boundary, rank within the kind


@dataclass(slots=True)
class Units:
    """Parallel lists; units tile the document, so that nothing between two of them can get lost."""

    length: int
    starts: list[int] = field(default_factory=list)
    cuts: list[tuple[int, int]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    sections: list[int] = field(default_factory=list)
    paths: list[tuple[str, ...]] = field(default_factory=list)
    headers: dict[int, tuple[int, int]] = field(default_factory=dict)

    def end(self, index: int) -> int:
        return self.starts[index + 1] if index + 1 < len(self.starts) else self.length

    def add(self, start: int, cut: int, rank: int, kind: str, section: int) -> None:
        self.starts.append(start)
        self.cuts.append((cut, rank))
        self.kinds.append(kind)
        self.sections.append(section)


def split_document(ruler: Ruler, *, target: int, limit: int) -> Units:
    """Units of at most `limit` tokens (a whole section counts as one if it has at most `target`), each with the section it is in."""
    text = ruler.text
    units = Units(len(text))
    sections = split_sections(text)
    units.paths.extend(section.path for section in sections)
    for number, (_, section) in enumerate(sections):
        start = section[0].start if number else 0
        end = sections[number + 1].blocks[0].start if number + 1 < len(sections) else len(text)
        if ruler.fits(start, end, target):
            units.add(start, SECTION, 0, section[-1].kind, number)
        else:
            _split_section(ruler, units, section, number, start=start, end=end, limit=limit)
    return units


def _split_section(ruler: Ruler, units: Units, section: list[Block], number: int, *, start: int, end: int, limit: int) -> None:
    headings = 0
    for index, block in enumerate(section):
        begin = start if index == 0 else block.start
        stop = section[index + 1].start if index + 1 < len(section) else end
        if index == 0:
            cut = SECTION
        elif section[index - 1].kind == md.HEADING:
            cut = GLUE
        else:
            cut = INTRO if _introduces(ruler.text, section[index - 1], block) else BLOCK
        if block.kind == md.HEADING:
            headings += ruler.size(begin, stop)
        # The text below a heading is cut finer when both do not fit, so that no heading stands alone.
        room = limit - headings if cut == GLUE and 0 < headings <= limit // 2 else limit
        if block.kind != md.HEADING:
            headings = 0
        if ruler.fits(begin, stop, room):
            units.add(begin, cut, 0, block.kind, number)
            continue
        for at, (piece, kind, rank) in enumerate(_parts(ruler, block, begin, stop, room)):
            if at == 0:
                kind, rank = cut, 0
            elif block.header and piece > block.header[1]:
                units.headers[len(units.starts)] = block.header
            units.add(piece, kind, rank, block.kind, number)


def _introduces(text: str, before: Block, block: Block) -> bool:
    return before.kind == md.PARAGRAPH and block.kind in (md.LIST, md.CODE, md.TABLE) and text[before.end - 1] in ":："


def _parts(ruler: Ruler, block: Block, start: int, end: int, limit: int) -> Iterator[Cut]:
    """Parts of a block that does not fit, each of which does."""
    text = ruler.text
    if block.kind == md.LIST:
        coarse = _item_cuts(text, start, end)
    elif block.kind == md.QUOTE:
        coarse = _quote_cuts(text, start, end)
    elif block.kind == md.CODE:
        coarse = _code_cuts(text, start, end)
    elif block.kind == md.TABLE:
        first = md.line_end(text, block.header[1] + 1) if block.header[1] < block.end else end
        coarse = ((at, SENTENCE, 0) for at in line_starts(text, start, end) if at > first)
    elif block.kind == md.HTML:
        coarse = ((at, SENTENCE, 0) for at in line_starts(text, start, end))
    else:
        coarse = iter(())
    for cut, stop in with_ends([(start, PIECE, 0), *coarse], end):
        if ruler.fits(cut[0], stop, limit):
            yield cut
        else:
            yield from finer_cuts(ruler, cut, stop, limit, prose=block.kind not in (md.CODE, md.TABLE, md.HTML))


def finer_cuts(ruler: Ruler, whole: Cut, end: int, limit: int, *, prose: bool) -> Iterator[Cut]:
    text = ruler.text
    sentences = [whole]
    if prose:
        sentences += [(at, SENTENCE, 0) for at in sentence_starts(text, whole[0], end)]
    for sentence, sentence_end in with_ends(sentences, end):
        if ruler.fits(sentence[0], sentence_end, limit):
            yield sentence
            continue
        lines = [sentence, *((at, LINE, 0) for at in line_starts(text, sentence[0], sentence_end))]
        for line, stop in with_ends(lines, sentence_end):
            if ruler.fits(line[0], stop, limit):
                yield line
                continue
            pieces = piece_starts(ruler, line[0], stop, limit)
            yield line
            for at in pieces[1:]:
                yield at, PIECE, 0


def with_ends(cuts: list[Cut], end: int) -> Iterator[tuple[Cut, int]]:
    for index, cut in enumerate(cuts):
        yield cut, (cuts[index + 1][0] if index + 1 < len(cuts) else end)


def _item_cuts(text: str, start: int, end: int) -> Iterator[Cut]:
    """Cuts before list items; deeper ones have the lower rank, so that an item keeps its own items where they fit."""
    fence = None
    for at in line_starts(text, start, end):
        line = text[at : md.line_end(text, at)]
        if fence:
            if md.closes_fence(line, fence) or (line.strip() and md.indent(line) == 0):
                fence = None
        elif md.MARKER.match(line):
            yield at, ITEM, -md.indent(line)
        else:
            fence = md.is_fence(line)


def _quote_cuts(text: str, start: int, end: int) -> Iterator[Cut]:
    blank = False
    for at in line_starts(text, start, end):
        bare = not text[at : md.line_end(text, at)].strip("> \t\n")
        if blank and not bare:
            yield at, ITEM, 0
        blank = bare


def _code_cuts(text: str, start: int, end: int) -> Iterator[Cut]:
    blank = False
    for at in line_starts(text, start, end):
        bare = not text[at : md.line_end(text, at)].strip()
        yield at, (ITEM if blank and not bare else SENTENCE), 0
        blank = bare
