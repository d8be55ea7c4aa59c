"""Datasets in the database: what the files of one hold together, and how a publication changes it.

Lock order: datasets (by the hashes of their keys) before documents, so that two files of one dataset are published one after the other.
Whoever only takes a document out locks no dataset: parts go with their document, and a dataset without parts is not there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from ingestion.datasets.columns import Column, SchemaDrift, merge_columns
from ingestion.datasets.wanted import NAMED, Known
from ingestion.models import IngestionRun, RunItem
from kb.models import Blob, Chunk, Dataset, DatasetPart, Document, key_hash

SETTLED = timedelta(minutes=1)

# Of datasets that a policy names: one document of those whose chunk went with another document; not while it is at work, or has failed.
_UNDESCRIBED = """
    SELECT DISTINCT ON (dataset.id) part.document_id
      FROM kb_dataset dataset JOIN kb_datasetpart part ON part.dataset_id = dataset.id
      JOIN kb_document document ON document.id = part.document_id AND document.last_error = ''
     WHERE dataset.key LIKE %s
       AND NOT EXISTS (SELECT FROM kb_datasetpart other JOIN kb_chunk chunk ON chunk.document_id = other.document_id
                          AND chunk.start = other.start WHERE other.dataset_id = dataset.id)
       AND NOT EXISTS (SELECT FROM ingestion_runitem item WHERE item.document_id = document.id AND item.stage <> 'done')
     ORDER BY dataset.id, part.id DESC LIMIT %s
"""


def together(parts: Iterable[DatasetPart]) -> Known:
    """What parts hold together: their columns in the order of the oldest file. Raises SchemaDrift where they do not fit, which no
    publication lets be."""
    columns: list[Column] = []
    rows = count = 0
    documents: set[UUID] = set()
    for part in parts:
        count += 1
        if part.document_id not in documents:  # the parts of one file have the same columns
            columns = merge_columns(columns, [Column.from_json(column) for column in part.columns])
        documents.add(part.document_id)
        rows += part.rows
    return Known(columns, rows, len(documents), count)


def known_datasets(item: RunItem, *, prefix: str) -> dict[str, Known]:
    """The datasets of the item's source whose key begins so, without what the item's own document has in them."""
    rows = DatasetPart.objects.filter(dataset__source=item.run.source_id, dataset__key__startswith=prefix)
    grouped: dict[str, list[DatasetPart]] = defaultdict(list)
    for part in rows.exclude(document_id=item.document_id).select_related("dataset").order_by("id"):
        grouped[part.dataset.key].append(part)
    return {key: together(parts) for key, parts in grouped.items()}


def files_of(item: RunItem) -> list[dict[str, Any]]:
    """The Parquet files that came out of the item."""
    return [file for file in (item.extracted or {}).get("files", ()) if file["kind"] == "dataset"]


def lock_datasets(run: IngestionRun, items: Sequence[RunItem]) -> dict[str, Dataset]:
    """The datasets that the items' files belong to, by key, made where there is none; before any document is locked."""
    names = {file["details"]["key"]: file["details"]["dataset"] for item in items for file in files_of(item)}
    if not names:
        return {}
    scope = {"organization_id": run.organization_id, "knowledge_base_id": run.knowledge_base_id, "source_id": run.source_id}
    new = [Dataset(**scope, key=key, key_hash=key_hash(key), name=name) for key, name in sorted(names.items())]
    Dataset.objects.bulk_create(new, ignore_conflicts=True)
    hashes = [row.key_hash for row in new]
    rows = Dataset.objects.select_for_update(no_key=True).filter(source=run.source_id, key_hash__in=hashes).order_by("key_hash")
    found = {row.key: row for row in rows}
    if renamed := [row for row in found.values() if row.name != names[row.key]]:
        for row in renamed:
            row.name = names[row.key]
        Dataset.objects.bulk_update(renamed, ["name"])
    return found


def fits_now(document: Document, item: RunItem, datasets: Mapping[str, Dataset]) -> bool:
    """Whether what came out of the item can still be published: its files are kept, and no other file came in between that its columns do
    not fit. Where not, it is read again, and that says why."""
    files = files_of(item)
    wanted = {file.get("blob") for file in files}
    kept = Blob.objects.select_for_update(no_key=True).filter(id__in=wanted - {None}, organization_id=item.organization_id).order_by("id")
    if len(list(kept)) < len(wanted) or any(file["details"]["key"] not in datasets for file in files):
        return False
    for details in {file["details"]["key"]: file["details"] for file in files}.values():
        if details["replaces"]:
            continue
        others = datasets[details["key"]].parts.exclude(document=document).order_by("id")
        try:
            merge_columns(together(others).columns, [Column.from_json(column) for column in details["columns"]])
        except SchemaDrift:
            return False
    return True


def put_parts(published: Sequence[tuple[Document, RunItem]], datasets: Mapping[str, Dataset]) -> None:
    """Make the items' files what their documents have in datasets, in the transaction that publishes their texts. The chunk of the last
    document then stands for a dataset: others lose theirs, and all that they have in one that it replaces."""
    DatasetPart.objects.filter(document__in=[document.id for document, _ in published]).delete()
    for document, item in published:
        if files_of(item):
            _put(document, item, datasets)


def _put(document: Document, item: RunItem, datasets: Mapping[str, Dataset]) -> None:
    files = files_of(item)
    DatasetPart.objects.bulk_create([_part(document, file, datasets[file["details"]["key"]]) for file in files])
    Dataset.objects.filter(id__in={datasets[file["details"]["key"]].id for file in files}).update(updated_at=timezone.now())
    for key, replaces in {file["details"]["key"]: file["details"]["replaces"] for file in files}.items():
        if key.startswith(NAMED):
            others = DatasetPart.objects.filter(dataset=datasets[key]).exclude(document=_newest(datasets[key]) if replaces else document)
            _drop_descriptions(others)
            if replaces:
                others.delete()


def _newest(dataset: Dataset) -> UUID | None:
    """The document of the file that was given last: one that is merely read again does not replace what came after it."""
    rows = Document.objects.filter(dataset_parts__dataset=dataset).order_by("-file__created_at", "-created_at")
    return rows.values_list("id", flat=True).first()


def _part(document: Document, file: Mapping[str, Any], dataset: Dataset) -> DatasetPart:
    details = file["details"]
    start, end = details["span"]
    return DatasetPart(
        organization_id=document.organization_id,
        knowledge_base_id=document.knowledge_base_id,
        dataset=dataset,
        document=document,
        blob_id=UUID(file["blob"]),
        sheet=details["sheet"][:255],
        columns=details["columns"],
        partition=details["partition"],
        rows=details["rows"],
        size=file["size"],
        start=start,
        end=end,
    )


def _drop_descriptions(parts: Iterable[DatasetPart]) -> None:
    for document, start in {(part.document_id, part.start) for part in parts}:
        gone, _ = Chunk.objects.filter(document=document, start=start).delete()
        if gone:
            Document.objects.filter(id=document).update(chunk_count=F("chunk_count") - gone)


def collect_datasets(limit: int = 500) -> int:
    """Remove datasets whose files are all gone; returns how many. Locked first, so that none goes whose next file is being published."""
    with transaction.atomic():
        empty = Dataset.objects.filter(~Exists(DatasetPart.objects.filter(dataset=OuterRef("id"))), created_at__lt=timezone.now() - SETTLED)
        locked = list(empty.select_for_update(skip_locked=True, of=("self",)).order_by("id").values_list("id", flat=True)[:limit])
        gone, _ = Dataset.objects.filter(~Exists(DatasetPart.objects.filter(dataset=OuterRef("id"))), id__in=locked).delete()
    return gone


def undescribed_documents(limit: int) -> list[UUID]:
    """The newest document of each dataset that no chunk describes any more."""
    with connection.cursor() as cursor:
        cursor.execute(_UNDESCRIBED, [f"{NAMED}%", limit])
        return [row[0] for row in cursor.fetchall()]
