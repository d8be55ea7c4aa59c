"""The publish stage: passages with vectors → what answers, one document in one transaction, as a difference of chunks."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils import timezone

from ingestion import claims
from ingestion.models import EmbeddedText, IngestionRun, RunItem
from ingestion.plan import plan_for
from ingestion.stages.extract import with_context
from ingestion.stages.items import Outcome, close, owned, take
from ingestion.stages.slices import Slice
from kb import blobs
from kb.models import Chunk, Document, Source
from kb.stores import vectors, words
from kb.words.analysis import document_terms
from kb.words.hashing import hash_counts

Stage, Verdict = RunItem.Stage, RunItem.Verdict
BATCH = 8
NAMESAKE = "\n"  # stands between the name and the number of a text that was added and replaces nothing


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of the new generation, with the hash of its embedded text."""

    ordinal: int
    start: int
    end: int
    heading_path: list[str]
    tokens: int
    table_header: list[int] | None
    context: str
    text: str
    text_hash: bytes
    pages: tuple[int | None, int | None]


def work(run: IngestionRun, part: Slice) -> None:
    """Publish items of the run until the slice ends."""
    while not part.is_over:
        items = take(run, Stage.EMBEDDED, limit=BATCH)
        if not items:
            return
        for item in items:
            markdown = blobs.read_text(item.markdown)
            prepared = passages_of(item, markdown)
            language = _language(run, item)
            analysed = {p.text_hash: document_terms(with_context(p.context, p.text), language) for p in prepared}
            publish_item(run, item, prepared, language, analysed)
        part.beat()


def passages_of(item: RunItem, markdown: str) -> list[Passage]:
    spans = [(span["page"], span["start"], span["end"]) for span in item.extracted.get("pages", [])]
    return [
        Passage(
            ordinal=ordinal,
            start=start,
            end=end,
            heading_path=path,
            tokens=tokens,
            table_header=header,
            context=context,
            text=markdown[start:end],
            text_hash=bytes(digest),
            pages=_pages(spans, start, end),
        )
        for ordinal, ((start, end, path, tokens, header, context), digest) in enumerate(zip(item.passages, item.text_hashes, strict=True))
    ]


def _pages(spans: Sequence[tuple[int, int, int]], start: int, end: int) -> tuple[int | None, int | None]:
    touched = [page for page, first, last in spans if first < end and last > start]
    return (touched[0], touched[-1]) if touched else (None, None)


def _language(run: IngestionRun, item: RunItem) -> str:
    configured = plan_for(run).language
    return (item.extracted.get("language") or "") if configured == "auto" else configured


def publish_item(run: IngestionRun, item: RunItem, passages: list[Passage], language: str, analysed: dict[bytes, Any]) -> None:
    """Make the passages what answers for the document, if it is still the one that the item was made for."""
    with claims.writing(run):
        if not owned(item):
            return
        document = _document(run, item)
        if document is None:
            close(item, Outcome(Verdict.SKIPPED, "superseded", "The document was deleted or replaced while this was under way."))
            return
        _replace_chunks(run, document, passages, language, analysed)
        _update_document(run, item, document, passages, language)
        if run.source.kind == Source.Kind.DIRECT:
            _remove_namesakes(run, document)
        close(item, Outcome(Verdict.INGESTED), document=document)


def _remove_namesakes(run: IngestionRun, document: Document) -> None:
    """A text that replaces takes the place of every text that was added under its name before."""
    if NAMESAKE in document.key:
        return
    Document.objects.filter(source=run.source, key__startswith=document.key + NAMESAKE, created_at__lt=run.created_at).delete()


def _document(run: IngestionRun, item: RunItem) -> Document | None:
    """The document, locked; None if another claim on it passed by. A crawled page gets its row here."""
    rows = Document.objects.select_for_update(no_key=True)
    if item.document_id is not None:
        return rows.filter(id=item.document_id, epoch=item.epoch).first()
    if run.source.kind != Source.Kind.WEB:
        return None
    document, _ = rows.get_or_create(
        source=run.source,
        key_hash=bytes(item.key_hash),
        defaults={"organization_id": run.organization_id, "knowledge_base_id": run.knowledge_base_id, "key": item.key, "url": item.key},
    )
    return document


def _replace_chunks(run: IngestionRun, document: Document, passages: list[Passage], language: str, analysed: dict[bytes, Any]) -> None:
    """Equal texts keep their chunk and its id; new ones come in, gone ones go out with their vectors and words (a trigger)."""
    free: dict[bytes, list[int]] = defaultdict(list)
    for chunk_id, digest in document.chunks.order_by("ordinal").values_list("id", "text_hash"):
        free[bytes(digest)].append(chunk_id)
    keeps_vectors = document.space_id == run.space_id and document.language == language
    kept: list[tuple[int, Passage]] = []
    new: list[Passage] = []
    for passage in passages:
        same = free.get(passage.text_hash)
        if same and keeps_vectors:
            kept.append((same.pop(0), passage))
        else:
            new.append(passage)
    gone = [chunk_id for ids in free.values() for chunk_id in ids]
    if kept:
        _move(kept)
    if new:
        _insert(run, document, new, language, analysed)
    if gone:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM kb_chunk WHERE id = ANY(%s)", [gone])


def _move(kept: list[tuple[int, Passage]]) -> None:
    rows = [
        {"id": chunk_id, "ordinal": p.ordinal, "start": p.start, "end": p.end, "first": p.pages[0], "last": p.pages[1], "header": p.table_header}
        for chunk_id, p in kept
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            'UPDATE kb_chunk chunk SET ordinal = moved.ordinal, start = moved.start, "end" = moved."end", page_start = moved.first,'
            " page_end = moved.last, table_header = moved.header"
            ' FROM jsonb_to_recordset(%s::jsonb) AS moved (id bigint, ordinal int, start int, "end" int, first int, last int, header int[])'
            " WHERE chunk.id = moved.id AND (chunk.ordinal, chunk.start, chunk.page_start, chunk.page_end)"
            " IS DISTINCT FROM (moved.ordinal, moved.start, moved.first, moved.last)",
            [json.dumps(rows)],
        )


def _insert(run: IngestionRun, document: Document, new: list[Passage], language: str, analysed: dict[bytes, Any]) -> None:
    rows = Chunk.objects.bulk_create(
        [
            Chunk(
                organization_id=run.organization_id,
                knowledge_base_id=run.knowledge_base_id,
                document=document,
                ordinal=passage.ordinal,
                start=passage.start,
                end=passage.end,
                text=passage.text,
                text_hash=passage.text_hash,
                heading_path=passage.heading_path,
                page_start=passage.pages[0],
                page_end=passage.pages[1],
                language=language,
                tokens=passage.tokens,
                table_header=passage.table_header,
            )
            for passage in new
        ]
    )
    paid = dict(
        EmbeddedText.objects.filter(
            organization_id=run.organization_id, space_id=run.space_id, text_hash__in={passage.text_hash for passage in new}
        ).values_list("text_hash", "vector")
    )
    paid = {bytes(digest): vector for digest, vector in paid.items()}
    scope = {"organization": run.organization_id, "knowledge_base": run.knowledge_base_id}
    vectors.add_vectors(
        **scope, space=run.space, rows=[vectors.VectorRow(row.id, paid[passage.text_hash]) for row, passage in zip(rows, new, strict=True)]
    )
    counted = [(row.id, *analysed[passage.text_hash]) for row, passage in zip(rows, new, strict=True)]
    words.add_words(**scope, rows=[words.WordRow(chunk_id, hash_counts(counts), length) for chunk_id, counts, length in counted])


def _update_document(run: IngestionRun, item: RunItem, document: Document, passages: list[Passage], language: str) -> None:
    now = timezone.now()
    extracted = item.extracted
    values = {
        "title": item.title,
        "media_type": extracted.get("media_type") or document.media_type,
        "language": language,
        "metadata": {**extracted.get("metadata", {}), **({"truncated": True} if extracted.get("truncated") else {})},
        "page_spans": extracted.get("pages", []),
        "markdown": item.markdown,
        "content_hash": item.content_hash,
        "quarantined_hash": None,
        "extract_fingerprint": item.fingerprints["extract"],
        "chunk_fingerprint": item.fingerprints["chunk"],
        "context_fingerprint": item.fingerprints["context"],
        "space_id": run.space_id,
        "generation": document.generation + 1,
        "missed_runs": 0,
        "tombstoned_at": None,
        "size": item.size,
        "characters": extracted.get("characters", 0),
        "chunk_count": len(passages),
        "last_error": "",
        "first_ingested_at": document.first_ingested_at or now,
        "last_ingested_at": now,
        "last_run_id": run.id,
        "seen_at": now,
    }
    Document.objects.filter(id=document.id).update(**values)
