"""A document that cannot be read: its verdict, and what becomes of the version before it."""

from config.errors import ExtractionError
from ingestion import claims
from ingestion.attachments import remove_attachments
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import plan_for
from ingestion.refusals import STANDING, mark
from ingestion.stages.items import Outcome, close, own
from kb.models import Document


def fail(run: IngestionRun, item: RunItem, error: ExtractionError) -> None:
    """The document's failure. When its content is at fault, the version that it replaced retires: its text is not what stands there."""
    with claims.writing(run):
        if not own(run, [item]):
            return
        close(item, Outcome(RunItem.Verdict.FAILED, str(error.extra.get("reason", "extraction_failed")), error.message))
        if item.document_id is None:
            return
        document = Document.objects.select_for_update(no_key=True).filter(id=item.document_id, epoch=item.epoch).first()
        if document is None:
            return
        document.last_error, document.last_reason = error.message, error.reason[:40]
        document.refused_under = _mark(run, item, error)
        if error.retires:
            document.chunks.all().delete()
            remove_attachments([document.id])
            document.dataset_parts.all().delete()
            document.content_hash = document.markdown = document.answering = None
            document.chunk_count, document.generation, document.warnings = 0, document.generation + 1, []
        written = ("content_hash", "markdown", "answering", "chunk_count", "generation", "warnings")
        document.save(update_fields=["last_error", "last_reason", "refused_under", *written])


def _mark(run: IngestionRun, item: RunItem, error: ExtractionError) -> str:
    if error.reason not in STANDING or item.content_hash is None:
        return ""
    return mark(run, plan_for(run, item.policy), bytes(item.content_hash))
