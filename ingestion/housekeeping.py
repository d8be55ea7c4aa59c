"""What is cleared away behind the product: removed sources and knowledge bases, statistics, caches, old verdicts, unused files."""

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from config.registry import Registry
from ingestion import claims
from ingestion.attachments import remove_attachments
from ingestion.models import EmbeddedText, IngestionRun, ProviderCall, RecognizedPart, ScheduleFire
from ingestion.schedules import remove_schedules
from kb import blobs, store_removals, uploads
from kb.models import Document, EmbeddingSpace, File, IdempotencyKey, KnowledgeBase, Organization, Source
from kb.stores import statistics
from kb.stores.provision import build_indexes, drop_space

log = logging.getLogger(__name__)

BATCH = 200
ITEM_BATCH = 5000
TEXTS_KEPT = timedelta(days=30)
FAILURES_KEPT = timedelta(days=90)
CALLS_KEPT = timedelta(days=90)
FIRES_KEPT = timedelta(days=90)
KEYS_KEPT = timedelta(hours=24)
WHOLE_RUNS_KEPT = 5


def housekeep() -> None:
    """Each job of settings.HOUSEKEEPING by itself: one that fails is logged and comes again in a minute."""
    jobs: Registry[Callable[[], object]] = Registry("housekeeping job", settings.HOUSEKEEPING)
    for name in settings.HOUSEKEEPING:
        try:
            jobs.load(name)()
        except Exception:
            log.exception("Housekeeping: %s failed and is tried again in a minute.", name)


def clear_removed_sources() -> None:
    """Sources that left the configuration: their runs end, their documents, chunks and files go in batches, then their rows."""
    for source in Source.objects.filter(state=Source.State.REMOVING):
        clear_source(source)


def clear_source(source: Source) -> None:
    """Batch by batch, each a transaction: cut off anywhere, the next housekeeping goes on with what is left."""
    remove_schedules([source.id])
    for run in IngestionRun.objects.filter(source=source, finished_at=None):
        claims.cancel(run, why="Its source was removed")
    while _delete_documents(source):
        pass
    while _delete_items(source):
        pass
    IngestionRun.objects.filter(source=source).delete()
    source.delete()


def _delete_items(source: Source) -> int:
    """A run may have an item for each of 100,000 URLs; they go without being read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM ingestion_runitem WHERE id IN (SELECT item.id FROM ingestion_runitem item"
            " JOIN ingestion_ingestionrun run ON run.id = item.run_id WHERE run.source_id = %s LIMIT %s)",
            [source.id, ITEM_BATCH],
        )
        return cursor.rowcount


def _delete_documents(source: Source) -> int:
    with transaction.atomic():
        rows = list(
            Document.objects.select_for_update(no_key=True).filter(source=source).order_by("id").values_list("id", "file_id")[:BATCH]
        )
        ids = [identifier for identifier, _ in rows]
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM kb_chunk WHERE document_id = ANY(%s)", [ids])
        remove_attachments(ids)
        files = [file for _, file in rows if file] + list(File.objects.filter(resource__in=ids).values_list("id", flat=True))
        Document.objects.filter(id__in=ids).delete()
        File.objects.filter(id__in=files).exclude(id__in=Document.objects.filter(file_id__in=files).values("file_id")).delete()
    return len(rows)


def clear_deleted() -> None:
    """Knowledge bases and organizations that were deleted; they have answered 404 since."""
    leaving = Organization.objects.filter(state=Organization.State.DELETING)
    KnowledgeBase.objects.filter(organization__in=leaving).update(state=KnowledgeBase.State.DELETING)
    for knowledge_base in KnowledgeBase.objects.filter(state=KnowledgeBase.State.DELETING):
        for source in Source.objects.filter(knowledge_base=knowledge_base):
            clear_source(source)
        knowledge_base.delete()
    for organization in leaving:
        if not KnowledgeBase.objects.filter(organization=organization).exists() and not store_removals.hold_up(organization.id):
            _clear_organization(organization)


def _clear_organization(organization: Organization) -> None:
    """What a cascade would leave over, or stumble upon: files in the storage, partitions of the organization's own models."""
    File.objects.filter(organization=organization).delete()
    while uploads.remove_all(organization.id):
        pass
    while blobs.remove_all(organization.id):
        pass
    for space in EmbeddingSpace.objects.filter(embedding_model__organization=organization):
        drop_space(space)
        space.delete()
    organization.delete()


def fold_words() -> None:
    """Fold the pending changes of word statistics, and bring scores up to a changed average length."""
    for knowledge_base_id in statistics.knowledge_bases_to_fold():
        statistics.fold_statistics(knowledge_base_id)
        while statistics.refresh_impacts(knowledge_base_id):
            pass


def build_vector_indexes() -> None:
    for space in EmbeddingSpace.objects.filter(provisioned_at__isnull=False):
        build_indexes(space)


def collect_texts() -> None:
    now = timezone.now()
    EmbeddedText.objects.filter(used_at__lt=now - TEXTS_KEPT).delete()
    RecognizedPart.objects.filter(used_at__lt=now - TEXTS_KEPT).delete()
    ProviderCall.objects.filter(sent_at__lt=now - CALLS_KEPT).delete()
    ScheduleFire.objects.filter(created_at__lt=now - FIRES_KEPT).delete()
    IdempotencyKey.objects.filter(created_at__lt=now - KEYS_KEPT).delete()


def collect_verdicts() -> None:
    """The last five runs of a source keep every verdict, older ones their failures for 90 days; counts stay on the run."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM ingestion_runitem WHERE id IN (SELECT item.id FROM ingestion_runitem item JOIN ("
            " SELECT id, finished_at, row_number() OVER (PARTITION BY source_id ORDER BY created_at DESC) AS position"
            " FROM ingestion_ingestionrun WHERE finished_at IS NOT NULL) run ON run.id = item.run_id"
            " WHERE run.position > %s AND (item.verdict <> 'failed' OR run.finished_at < %s) LIMIT 5000)",
            [WHOLE_RUNS_KEPT, timezone.now() - FAILURES_KEPT],
        )
