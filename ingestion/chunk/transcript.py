from __future__ import annotations

import re
from collections.abc import Iterator

from ingestion.chunk import blocks as md
from ingestion.chunk.base import ChunkSettings, Passage
from ingestion.chunk.packing import fold, pack
from ingestion.chunk.passages import make_passages
from ingestion.chunk.prose import line_starts
from ingestion.chunk.ruler import Ruler
from ingestion.chunk.sections import split_sections
from ingestion.chunk.units import ITEM, SECTION, SENTENCE, Units, finer_cuts, with_ends

_CLOCK = r"[\[(<]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?[\])>]?"
# "Ann Lee:", "**Ann**:", "[00:01:02] Ann:", "00:01 - text", "<v Ann>": what usually opens a turn.
_TURN = re.compile(
    rf"[ \t]{{0,3}}(?:[-*>] )?(?:{_CLOCK}|<v [^>\n]{{1,60}}>|(?:\*\*|__)[^*_:\n]{{1,60}}:?(?:\*\*|__):?|[^\W\d_][\w .'’()-]{{0,40}}:(?=\s))"
)


def chunk(ruler: Ruler, settings: ChunkSettings) -> list[Passage]:
    """Cut by speaker turns, then lines, then sentences; a turn is kept together where it fits."""
    limit = max(1, settings.target_tokens - settings.overlap_tokens)
    units = _split_turns(ruler, limit)
    groups = pack(ruler, units, limit=limit)
    if settings.min_chars:
        fold(ruler, units, groups, target=settings.target_tokens, min_chars=settings.min_chars)
    return make_passages(ruler, units, groups, settings)


def _split_turns(ruler: Ruler, limit: int) -> Units:
    text = ruler.text
    units = Units(len(text))
    sections = split_sections(text)
    for number, section in enumerate(sections):
        units.paths.append(section.path)
        start = section.blocks[0].start if number else 0
        end = sections[number + 1].blocks[0].start if number + 1 < len(sections) else len(text)
        for turn, turn_end in with_ends([(start, SECTION, 0), *_turns(text, start, end)], end):
            if ruler.fits(turn[0], turn_end, limit):
                units.add(*turn, md.PARAGRAPH, number)
                continue
            lines = [turn, *((at, SENTENCE, 1) for at in line_starts(text, turn[0], turn_end))]
            for line, stop in with_ends(lines, turn_end):
                if ruler.fits(line[0], stop, limit):
                    units.add(*line, md.PARAGRAPH, number)
                    continue
                for cut in finer_cuts(ruler, line, stop, limit, prose=True):
                    units.add(*cut, md.PARAGRAPH, number)
    return units


def _turns(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Turns begin where a speaker or a clock is named, and after an empty line."""
    blank = False
    for at in line_starts(text, start, end):
        stop = md.line_end(text, at)
        if not text[at : min(stop, at + 200)].strip():
            blank = True
            continue
        if _TURN.match(text, at, min(stop + 1, at + 200)):
            yield at, ITEM, 1
        elif blank:
            yield at, ITEM, 0
        blank = False
