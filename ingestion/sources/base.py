"""What a source lists: one entry per document that it has now."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kb.models import Document, Source


@dataclass(frozen=True, slots=True)
class Listed:
    """A document that the source has, and the bytes that stand for it now."""

    document: Document
    blob_id: UUID
    content_hash: bytes
    size: int


class Lister(Protocol):
    def __call__(self, source: Source, *, after: UUID | None, limit: int) -> Iterator[Listed]: ...
