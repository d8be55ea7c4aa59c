"""What came with a message, and what became of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from ingestion.attachments import MAX_NESTING, refused_hash
from ingestion.models import RunItem
from ingestion.services.documents import with_state
from ingestion.services.file_status import Status, source_status
from kb.models import Document


@dataclass(frozen=True, slots=True)
class Attached:
    """`document_id` is None for one that was refused before it became a document."""

    document_id: UUID | None
    name: str
    status: Status
    error: str | None = None
    reason: str | None = None
    chunks: int = 0


def attachments_of(message: Document) -> list[Attached]:
    """By name, with those of attached messages. Whoever may see the message may see them."""
    found, level = list(_refused(message, message)), [message.id]
    for _ in range(MAX_NESTING):
        rows = list(with_state(Document.objects.filter(part_of__in=level)))
        for row in rows:
            error, reason = (row.last_error or None, row.last_reason or None) if row.last_error else (None, None)
            found.append(Attached(row.id, _name(row.key, message), source_status(row), error, reason, row.chunk_count))
            found.extend(_refused(row, message))
        level = [row.id for row in rows]
    return sorted(found, key=lambda each: each.name)


def _refused(parent: Document, message: Document) -> Iterator[Attached]:
    """By the verdicts of its last run, as long as those are kept."""
    rows = RunItem.objects.filter(run=parent.last_run_id, document=None, verdict=RunItem.Verdict.FAILED, key__startswith=f"{parent.key}/")
    for item in rows.only("key", "key_hash", "error", "reason"):
        # Another message of the same title is told apart by its identity.
        if bytes(item.key_hash) == refused_hash(parent, item.key[len(parent.key) + 1 :]):
            yield Attached(None, _name(item.key, message), Status.FAILED, item.error, item.reason)


def _name(key: str, message: Document) -> str:
    return key.removeprefix(f"{message.key}/")
