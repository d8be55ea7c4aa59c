from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import semchunk

from ingestion.chunk import blocks as md
from ingestion.chunk.base import ChunkSettings, Passage
from ingestion.chunk.packing import Groups, fold
from ingestion.chunk.passages import make_passages
from ingestion.chunk.prose import window_end
from ingestion.chunk.ruler import CHARS_PER_TOKEN, Ruler
from ingestion.chunk.sections import HeadingPaths
from ingestion.chunk.units import ITEM, Units

# semchunk holds every split of its text in lists and tokenises all of them; windows keep both in bounds.
_WINDOW = 64_000


def chunk(ruler: Ruler, settings: ChunkSettings) -> list[Passage]:
    """Cut by semchunk alone: the longest white space first, then punctuation, words, characters. Structure is not looked at."""
    limit = max(1, settings.target_tokens - settings.overlap_tokens)
    units = Units(len(ruler.text), paths=[()])
    for start in _cuts(ruler, limit):
        units.add(start, ITEM, 0, md.PARAGRAPH, 0)
    number = len(units.starts)
    sizes = [ruler.size(units.starts[index], units.end(index)) for index in range(number)]
    groups = Groups(list(range(number)), list(range(number)), sizes)
    if settings.min_chars:
        fold(ruler, units, groups, target=settings.target_tokens, min_chars=settings.min_chars)
    paths = HeadingPaths(ruler.text)
    return [replace(passage, heading_path=paths.at(passage.start)) for passage in make_passages(ruler, units, groups, settings)]


def _cuts(ruler: Ruler, limit: int) -> Iterator[int]:
    text, count = ruler.text, ruler.count

    def weigh(piece: str) -> int:
        # A text without splitters is asked for character by character.
        return 1 if len(piece) <= 1 else max(count(piece), -(-len(piece) // CHARS_PER_TOKEN))

    at = 0
    while at < len(text):
        stop = window_end(text, at, len(text), _WINDOW)
        _, spans = semchunk.chunk(text[at:stop], limit, weigh, memoize=False, offsets=True)
        yield at
        yield from (at + start for start, _ in spans[1:])
        at = stop
