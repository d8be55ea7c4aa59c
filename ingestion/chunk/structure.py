from __future__ import annotations

from ingestion.chunk.base import ChunkSettings, Passage
from ingestion.chunk.packing import fold, pack
from ingestion.chunk.passages import make_passages
from ingestion.chunk.ruler import Ruler
from ingestion.chunk.units import split_document


def chunk(ruler: Ruler, settings: ChunkSettings) -> list[Passage]:
    """Cut by headings, blocks, items, rows and sentences. Overlap is added last and decides no boundary, so it cannot spread."""
    limit = max(1, settings.target_tokens - settings.overlap_tokens)
    units = split_document(ruler, target=settings.target_tokens, limit=limit)
    groups = pack(ruler, units, limit=limit)
    if settings.min_chars:
        fold(ruler, units, groups, target=settings.target_tokens, min_chars=settings.min_chars)
    return make_passages(ruler, units, groups, settings)
