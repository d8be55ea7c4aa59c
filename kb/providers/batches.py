"""Texts into batches; pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one call takes. A single text above `max_tokens` still makes a batch of its own."""

    max_texts: int
    max_tokens: int


def make_batches(counts: Sequence[int], limits: BatchLimits) -> list[list[int]]:
    """Indexes of `counts` (tokens of each text) in batches within both limits, longest first, so that a batch holds similar lengths."""
    batches: list[list[int]] = []
    room = 0
    for index in sorted(range(len(counts)), key=lambda i: (-counts[i], i)):
        if not batches or len(batches[-1]) >= limits.max_texts or counts[index] > room:
            batches.append([])
            room = limits.max_tokens
        batches[-1].append(index)
        room -= counts[index]
    return batches
