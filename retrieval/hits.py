"""What a search hands out. Pure values: no model, no setting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of the document's stored Markdown, end not included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scores:
    """All scores of a hit, by name; None where a side did not name it.

    `vector` is the cosine, `keyword` BM25 as a share of the most that the query could score, `keyword_raw` BM25 itself, `fused` what hybrid
    mode ranks by, `reranked` the reranker's probability. Ranks start at 1.
    """

    vector: float | None = None
    keyword: float | None = None
    keyword_raw: float | None = None
    fused: float | None = None
    reranked: float | None = None
    vector_rank: int | None = None
    keyword_rank: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentReference:
    id: UUID
    title: str
    url: str | None
    source_id: UUID
    knowledge_base_id: UUID
    media_type: str | None = None
    language: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """A table that a hit describes; it is queried with SQL by its id."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class Twin:
    """Another document that says nearly the same as a hit, and the chunk where it does."""

    citation: str
    document: DocumentReference
    heading_path: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers. `span` is where `text` stands, neighbours included; `match` is the chunk that was found.

    `text` is the Markdown of `span` but for the white space between chunks, with the header of its table before it where the chunk begins
    inside of one: its first `header_length` characters. `score` is the one that ranks. `chunks` counts the chunks that were joined.
    `also_in` names other documents that say nearly the same.
    """

    citation: str
    chunk_id: int
    text: str
    score: float
    scores: Scores
    document: DocumentReference
    heading_path: tuple[str, ...]
    page: int | None
    page_end: int | None
    span: Span
    match: Span
    chunks: int = 1
    header_length: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    dataset: DatasetReference | None = None
    also_in: tuple[Twin, ...] = ()


def citation_of(chunk_id: int) -> str:
    """The name that answers cite a chunk by; opaque to clients."""
    return f"c:{chunk_id}"
