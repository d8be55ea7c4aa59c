"""Files of one channel are worked by policies of their own: items in groups of one plan, and those that are only kept."""

from collections.abc import Iterator, Sequence

from django.utils import timezone

from ingestion import claims
from ingestion.attachments import remove_attachments
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan, plan_for
from ingestion.stages.items import Outcome, close, close_superseded, own
from kb.models import Document

STORED = "stored"


def by_plan(run: IngestionRun, items: Sequence[RunItem], plan: Plan) -> Iterator[tuple[Plan, list[RunItem]]]:
    """The items in groups; those without a policy, of every other kind of source, are of the run's own plan."""
    groups: dict[int, tuple[Plan, list[RunItem]]] = {}
    for item in items:
        own_plan = plan_for(run, item.policy) if item.policy else plan
        groups.setdefault(id(own_plan), (own_plan, []))[1].append(item)
    yield from groups.values()


def store_items(run: IngestionRun, items: Sequence[RunItem], plan: Plan) -> None:
    """Files that are kept and not read: what answered of an earlier version goes, because the document is this file now."""
    with claims.writing(run):
        for item in own(run, items):
            document = Document.objects.select_for_update(no_key=True).filter(id=item.document_id, epoch=item.epoch).first()
            if document is None:
                close_superseded(run, [item])
                continue
            remove_attachments([document.id])
            document.chunks.all().delete()
            remove_attachments([document.id])
            document.dataset_parts.all().delete()
            for name, value in _stored(run, item, document, plan).items():
                setattr(document, name, value)
            document.save()
            close(item, Outcome(RunItem.Verdict.INGESTED, STORED))


def _stored(run: IngestionRun, item: RunItem, document: Document, plan: Plan) -> dict[str, object]:
    now = timezone.now()
    return {
        "media_type": document.file.media_type if document.file else document.media_type,
        "markdown": None,
        "page_spans": [],
        "content_hash": item.content_hash,
        "answering_id": document.file_id,
        "extract_fingerprint": plan.fingerprints["extract"],
        "chunk_fingerprint": plan.fingerprints["chunk"],
        "context_fingerprint": plan.fingerprints["context"],
        "space_id": run.space_id,
        "generation": document.generation + 1,
        "size": item.size,
        "characters": 0,
        "chunk_count": 0,
        "warnings": [],
        "last_error": "",
        "last_reason": "",
        "refused_under": "",
        "first_ingested_at": document.first_ingested_at or now,
        "last_ingested_at": now,
        "last_run_id": run.id,
    }
