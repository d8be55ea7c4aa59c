from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

STRATEGIES = ("structure", "recursive", "transcript")


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """Resolved settings, in tokens of the embedding model: what `auto` and fractions mean was decided by `resolve_budget`."""

    strategy: str = "structure"
    target_tokens: int = 218
    overlap_tokens: int = 17
    min_chars: int = 120

    def __post_init__(self) -> None:
        if self.target_tokens < 1:
            raise ValueError(f"target_tokens is {self.target_tokens}; it must be at least 1.")
        if not 0 <= self.overlap_tokens < self.target_tokens:
            raise ValueError(f"overlap_tokens is {self.overlap_tokens}; it must be 0 to {self.target_tokens - 1}, less than target_tokens.")
        if self.min_chars < 0:
            raise ValueError(f"min_chars is {self.min_chars}; it must be at least 0.")


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk before it is stored: `markdown[start:end]` is its text, without surrounding white space.

    A passage that begins in the middle of a table carries the span of the table's header; its own span covers rows only.
    """

    start: int
    end: int
    heading_path: tuple[str, ...]
    tokens: int
    table_header: tuple[int, int] | None = None


@runtime_checkable
class OffsetCounter(Protocol):
    """A counter that knows where tokens lie: a document is then tokenised once, not once for each sentence."""

    def count(self, text: str) -> int: ...

    def offsets(self, text: str) -> list[tuple[int, int]]: ...


Counter = Callable[[str], int] | OffsetCounter
