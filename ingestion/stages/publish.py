"""The publish stage: passages with vectors → what answers, as a difference of chunks, whole documents in one transaction."""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

import numpy as np
from django.db import DataError, connection, transaction
from django.utils import timezone

from ingestion import claims
from ingestion.attachments import settle_attachments
from ingestion.following import SpaceLeft, publishing
from ingestion.generations import Difference, Generation, Passage, compare, prepare
from ingestion.models import IngestionRun, RunItem
from ingestion.parts import fits_now, lock_datasets, put_parts
from ingestion.plan import plan_for
from ingestion.rows import update_rows
from ingestion.stages.items import Outcome, advance, close, close_all, close_superseded, give_back, own, postpone, take
from ingestion.stages.points import Placement, paid_vectors, place_points
from ingestion.stages.slices import Slice
from kb import store_removals
from kb.models import Chunk, Document, Source
from kb.stores import vectors, words
from kb.stores.base import StoreRefused, StoreUnavailable

log = logging.getLogger(__name__)
Stage, Verdict = RunItem.Stage, RunItem.Verdict
BATCH = 32
MAX_PASSAGES = 400  # of documents published together; a larger document is published alone
STORE_RETRY_SECONDS = 30.0
MAX_WARNINGS = 20
MAX_WARNING_CHARS = 500
NAMESAKE = "\n"  # stands between the name and the number of a text that was added and replaces nothing


def work(run: IngestionRun, part: Slice) -> bool:
    """Publish items of the run, a handful of documents at a time, until the slice ends. False while a store is away."""
    language = plan_for(run).language
    while not part.is_over:
        items = take(run, Stage.EMBEDDED, token=part.lease, limit=BATCH, related=("markdown",))
        if not items:
            return True
        handful = _handful(items)
        try:
            publish_items(run, [prepare(item, configured_language=language) for item in handful])
        except SpaceLeft:
            give_back(handful)
            return True
        except StoreUnavailable as error:
            _put_off(run, handful, error)
            return False
        except StoreRefused as error:
            _refuse(run, handful, error)
        part.beat()
    return True


def _handful(items: list[RunItem]) -> list[RunItem]:
    """As many of the items as make a short transaction; the rest goes back."""
    passages = 0
    for position, item in enumerate(items):
        passages += item.chunks
        if position and passages > MAX_PASSAGES:
            give_back(items[position:])
            return items[:position]
    return items


def _put_off(run: IngestionRun, items: list[RunItem], error: StoreUnavailable) -> None:
    """A store that is away costs no attempt; what stood before goes on answering."""
    for item in items:
        postpone(item, STORE_RETRY_SECONDS, error.message)
    IngestionRun.objects.filter(id=run.id, finished_at=None).update(error=error.message[:2000])


def _refuse(run: IngestionRun, items: list[RunItem], error: StoreRefused) -> None:
    """A wrong key or collection will not do later either: somebody has to look. Vectors stay paid, so that another run costs nothing."""
    with claims.writing(run):
        for item in own(run, items):
            close(item, Outcome(Verdict.FAILED, "store_error", error.message))


def publish_items(run: IngestionRun, generations: list[Generation]) -> None:
    """Make the generations what answers for their documents, for those that still are what their items were made for. Raises
    StoreUnavailable, StoreRefused and SpaceLeft, and then nothing has changed."""
    placement = place_points(run, generations)
    try:
        with publishing(run):
            _publish(run, generations, placement)
    except DataError:
        if len(generations) > 1:  # one of them holds what the database refuses: alone it is found
            for generation in generations:
                publish_items(run, [generation])
            return
        item = generations[0].item
        log.exception("%s cannot be published.", item)
        with claims.writing(run):
            if own(run, [item]):
                close(item, Outcome(Verdict.FAILED, "internal", "The database refused what was read of this document. Please report it."))


def _publish(run: IngestionRun, generations: list[Generation], placement: Placement | None) -> None:
    held = {item.id for item in own(run, [generation.item for generation in generations])}
    generations = [generation for generation in generations if generation.item.id in held]
    datasets = lock_datasets(run, [generation.item for generation in generations])
    documents = _lock_documents(run, generations, placement.reserved if placement else {})
    pairs = [(documents[g.item.id], g) for g in generations if g.item.id in documents]
    difference = compare(pairs, space=run.space_id)
    paid = paid_vectors(run, {passage.text_hash for _, _, passage in difference.new})
    lacking = {document.id for document, _, passage in difference.new if passage.text_hash not in paid}
    lacking |= {document.id for document, generation in pairs if not fits_now(document, generation.item, datasets)}
    if lacking:
        # Vectors were forgotten or collected since they were paid, or another file of a dataset came in between: their documents are read
        # again, so that they are wanted again.
        advance(Stage.FETCHED, [(g.item, {"markdown": None}) for document, g in pairs if document.id in lacking])
        pairs = [(document, g) for document, g in pairs if document.id not in lacking]
        difference = compare(pairs, space=run.space_id)
    if placement and (late := placement.lacking(difference)):
        # Published by somebody else since the points were written: they are written anew.
        advance(Stage.EMBEDDED, [(g.item, {}) for document, g in pairs if document.id in late])
        pairs = [(document, g) for document, g in pairs if document.id not in late]
        difference = compare(pairs, space=run.space_id)
    _apply(run, difference, paid, placement)
    update_rows(Document, [(document.id, _values(run, document, generation)) for document, generation in pairs])
    put_parts([(document, generation.item) for document, generation in pairs], datasets)
    settle_attachments([(document, generation.item) for document, generation in pairs])
    if run.source.kind == Source.Kind.DIRECT:
        for document, _ in pairs:
            _remove_namesakes(run, document)
    close_all([generation.item for _, generation in pairs], Outcome(Verdict.INGESTED), documents=documents)
    close_superseded(run, [g.item for g in generations if g.item.id not in documents])


def _lock_documents(run: IngestionRun, generations: list[Generation], reserved: Mapping[int, UUID]) -> dict[int, Document]:
    """Item id to its document, locked in the order of ids; without those that another claim passed by. A crawled page gets its row here."""
    named = {g.item.document_id: g.item for g in generations if g.item.document_id}
    rows = Document.objects.select_for_update(no_key=True).filter(id__in=named).order_by("id")
    found = {named[row.id].id: row for row in rows if row.epoch == named[row.id].epoch}
    if run.source.kind == Source.Kind.WEB:
        for item in sorted((g.item for g in generations if not g.item.document_id), key=lambda item: bytes(item.key_hash)):
            document, _ = Document.objects.select_for_update(no_key=True).get_or_create(
                source=run.source,
                key_hash=bytes(item.key_hash),
                defaults={
                    "organization_id": run.organization_id,
                    "knowledge_base_id": run.knowledge_base_id,
                    "key": item.key,
                    "url": item.url,
                    **({"id": reserved[item.id]} if item.id in reserved else {}),
                },
            )
            found[item.id] = document
    return found


def _remove_namesakes(run: IngestionRun, document: Document) -> None:
    """A text that replaces takes the place of every text that was added under its name before."""
    if NAMESAKE in document.key:
        return
    Document.objects.filter(source=run.source, key__startswith=document.key + NAMESAKE, created_at__lt=run.created_at).delete()


def _apply(run: IngestionRun, difference: Difference, paid: Mapping[bytes, np.ndarray], placement: Placement | None) -> None:
    """New chunks in with vectors and words, kept ones moved, gone ones out (a trigger takes their vectors and words, and notes what has
    to leave a store)."""
    if difference.kept:
        _move(difference.kept)
    if difference.new:
        _insert(run, difference, paid, placement)
    if difference.gone:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM kb_chunk WHERE id = ANY(%s)", [difference.gone])
    if placement:
        placement.settle()
        transaction.on_commit(partial(store_removals.drain, run.knowledge_base_id), robust=True)


def _move(kept: list[tuple[int, Passage]]) -> None:
    rows = [
        {
            "id": chunk,
            "ordinal": p.ordinal,
            "start": p.start,
            "end": p.end,
            "first": p.pages[0],
            "last": p.pages[1],
            "header": p.table_header,
        }
        for chunk, p in kept
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            'UPDATE kb_chunk chunk SET ordinal = moved.ordinal, start = moved.start, "end" = moved."end", page_start = moved.first,'
            " page_end = moved.last, table_header = moved.header"
            ' FROM jsonb_to_recordset(%s::jsonb) AS moved (id bigint, ordinal int, start int, "end" int, first int, last int, header int[])'
            " WHERE chunk.id = moved.id AND (chunk.ordinal, chunk.start, chunk.page_start, chunk.page_end, chunk.table_header)"
            " IS DISTINCT FROM (moved.ordinal, moved.start, moved.first, moved.last, moved.header)",
            [json.dumps(rows)],
        )


def _insert(run: IngestionRun, difference: Difference, paid: Mapping[bytes, np.ndarray], placement: Placement | None) -> None:
    rows = Chunk.objects.bulk_create(
        [
            Chunk(
                id=placement.take(document, passage.text_hash) if placement else None,
                organization_id=run.organization_id,
                knowledge_base_id=run.knowledge_base_id,
                document=document,
                ordinal=passage.ordinal,
                start=passage.start,
                end=passage.end,
                text=passage.text,
                context=passage.context,
                text_hash=passage.text_hash,
                heading_path=passage.heading_path,
                page_start=passage.pages[0],
                page_end=passage.pages[1],
                language=language,
                tokens=passage.tokens,
                table_header=passage.table_header,
            )
            for document, language, passage in difference.new
        ]
    )
    passages = [passage for _, _, passage in difference.new]
    scope: dict[str, UUID] = {"organization": run.organization_id, "knowledge_base": run.knowledge_base_id}
    chunks = [row.id for row in rows]
    if placement is None:
        rows = [vectors.VectorRow(chunk, paid[p.text_hash]) for chunk, p in zip(chunks, passages, strict=True)]
        vectors.add_vectors(**scope, space=run.space, rows=rows)
    words.add_words(**scope, rows=[p.words(chunk) for chunk, p in zip(chunks, passages, strict=True)])


def _values(run: IngestionRun, document: Document, generation: Generation) -> dict[str, object]:
    """What the document's row says after this publication."""
    now = timezone.now()
    item, extracted = generation.item, generation.item.extracted
    served = {"url": item.url, **item.validators} if item.url else {}  # the address that served it, which may change its spelling
    return {
        "url": document.url,
        "etag": document.etag,
        "last_modified": document.last_modified,
        **served,
        "title": document.key[:300]
        if run.source.kind == Source.Kind.CHANNEL and not document.part_of_id
        else item.title,  # as its uploader called it
        "media_type": extracted.get("media_type") or (document.file.media_type if document.file else document.media_type),
        "language": generation.language,
        "metadata": {**extracted.get("metadata", {}), **({"truncated": True} if extracted.get("truncated") else {})},
        "page_spans": extracted.get("pages", []),
        "markdown": None if (item.policy or {}).get("values", {}).get("keep_markdown") is False else item.markdown,
        "answering": document.file_id,  # of the item's epoch, so it is the file that the item was made of
        "content_hash": item.content_hash,
        "quarantined_hash": None,
        "refused_under": "",
        "extract_fingerprint": item.fingerprints["extract"],
        "extractor_version": extracted.get("extractor_version", ""),
        "chunk_fingerprint": item.fingerprints["chunk"],
        "context_fingerprint": item.fingerprints["context"],
        "space": run.space_id,
        "generation": document.generation + 1,
        "missed_runs": 0,
        "tombstoned_at": None,
        "size": item.size,
        "characters": extracted.get("characters", 0),
        "chunk_count": len(generation.passages),
        "warnings": _bounded(item.warnings),
        "last_error": "",
        "last_reason": "",
        "first_ingested_at": document.first_ingested_at or now,
        "last_ingested_at": now,
        "last_run_id": run.id,
        "seen_at": now,
    }


def _bounded(warnings: Sequence[str]) -> list[str]:
    """Each once; of very many the first, and how many more there were. The run's item has them all."""
    told = list(dict.fromkeys(warning[:MAX_WARNING_CHARS] for warning in warnings))
    if len(told) <= MAX_WARNINGS:
        return told
    kept = told[: MAX_WARNINGS - 1]
    return [*kept, f"There are {len(told) - len(kept):,} more warnings; the run's item has them."]
