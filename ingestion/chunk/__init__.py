"""Markdown cut into passages. Pure: sizes and the token counter come from the caller."""

from __future__ import annotations

from importlib import import_module

from ingestion.chunk.base import ChunkSettings, Counter, Passage
from ingestion.chunk.passages import strip_span
from ingestion.chunk.ruler import Ruler
from ingestion.chunk.sections import HeadingPaths

__all__ = ["CHUNK_STRATEGIES", "ChunkSettings", "Counter", "Passage", "chunk"]

CHUNK_STRATEGIES = {
    "structure": "ingestion.chunk.structure:chunk",
    "recursive": "ingestion.chunk.recursive:chunk",
    "transcript": "ingestion.chunk.transcript:chunk",
}


def chunk(markdown: str, *, settings: ChunkSettings, count: Counter) -> list[Passage]:
    """Passages in the order of the text, every visible character in at least one, none above `target_tokens`.

    The one exception is a single character that is more tokens than the target. A document that fits is one passage; an empty one is none.
    """
    if settings.strategy not in CHUNK_STRATEGIES:
        raise ValueError(f"Unknown chunking strategy {settings.strategy!r}; known are {', '.join(CHUNK_STRATEGIES)}.")
    start, end = strip_span(markdown, 0, len(markdown))
    if start == end:
        return []
    ruler = Ruler(markdown, count)
    if (tokens := ruler.whole(start, end, settings.target_tokens)) is not None:
        return [Passage(start, end, HeadingPaths(markdown).at(start), tokens)]
    module, _, name = CHUNK_STRATEGIES[settings.strategy].partition(":")
    return getattr(import_module(module), name)(ruler, settings)
