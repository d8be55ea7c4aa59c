"""Upload sources: the documents are the files that were put there."""

from collections.abc import Iterator
from uuid import UUID

from ingestion.sources.base import Listed
from kb.models import Document, Source


def list_files(source: Source, *, after: UUID | None, limit: int) -> Iterator[Listed]:
    """The source's files in the order of their ids, from `after` on."""
    rows = Document.objects.filter(source=source, file__isnull=False).select_related("file").order_by("id")
    if after is not None:
        rows = rows.filter(id__gt=after)
    for document in rows[:limit]:
        yield Listed(document=document, blob_id=document.file.blob_id, content_hash=bytes(document.file.sha256), size=document.file.size)
