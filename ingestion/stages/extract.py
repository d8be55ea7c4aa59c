"""The extract stage: stored bytes → Markdown → passages → wanted texts, in a child process with limits."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Sum

from config.errors import ExtractionError, LecternError
from ingestion import claims, wakes
from ingestion.children import sandbox
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan, plan_for
from ingestion.stages.items import Outcome, advance, close, owned, postpone, take
from ingestion.stages.slices import Slice
from kb import blobs
from kb.models import Blob, Document

log = logging.getLogger(__name__)
Stage, Verdict = RunItem.Stage, RunItem.Verdict
RETRY_SECONDS = 10.0

# A text that was wanted before, and failed, is wanted anew; a paid one is only marked as used.
_WANT = """
    INSERT INTO ingestion_embeddedtext (organization_id, space_id, text_hash, text, tokens, attempts, failures, error, used_at)
    SELECT %(organization)s, %(space)s, wanted.hash, wanted.text, wanted.tokens, 0, 0, '', now()
      FROM unnest(%(hashes)s::bytea[], %(texts)s::text[], %(tokens)s::int[]) AS wanted (hash, text, tokens)
     ORDER BY wanted.hash
    ON CONFLICT (organization_id, space_id, text_hash) DO UPDATE
       SET used_at = now(), error = '', failures = 0,
           attempts = CASE WHEN ingestion_embeddedtext.error = '' THEN ingestion_embeddedtext.attempts ELSE 0 END
 RETURNING text_hash, (xmax = 0) AS is_new, vector IS NOT NULL AS is_paid
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a child made of a file: `extracted` without its Markdown, and passages as spans into that."""

    markdown: str
    extracted: dict[str, Any]
    passages: list[dict[str, Any]]


def work(run: IngestionRun, part: Slice) -> None:
    """Extract items of the run one by one until the slice ends."""
    plan = plan_for(run)
    while not part.is_over:
        if _segments(run) >= plan.settings.max_segments_per_run:
            _stop_at_segment_limit(run)
            return
        items = take(run, Stage.FETCHED, limit=1)
        if not items:
            return
        for item in items:
            extract_item(run, item, plan)
        part.beat()


def extract_item(run: IngestionRun, item: RunItem, plan: Plan) -> None:
    """Read, cut and say which vectors are wanted; any failure becomes the item's verdict."""
    try:
        reading = read_item(item, plan)
        markdown = item.markdown or blobs.store_bytes(run.organization_id, reading.markdown.encode("utf-8"))
    except ExtractionError as error:
        _fail(run, item, error)
        return
    except LecternError as error:
        with claims.writing(run):
            postpone(item, RETRY_SECONDS, error.message)
        return
    _want(run, item, plan, reading, markdown)


def read_item(item: RunItem, plan: Plan) -> Reading:
    """What a child makes of the item's bytes, or of its Markdown where that is known already."""
    if item.markdown is None:
        with blobs.local_path(item.blob) as path:
            declared = item.document.media_type if item.document else None
            request = {"op": "extract", "path": str(path), "name": item.key, "declared_type": declared or None}
            result = sandbox().run({**request, "limits": plan.extract, "chunk": plan.chunk})
        extracted = dict(result["extracted"])
        return Reading(extracted.pop("markdown"), extracted, result["passages"])
    with blobs.local_path(item.markdown) as path:
        result = sandbox().run({"op": "chunk", "path": str(path), "limits": plan.extract, "chunk": plan.chunk, "title": item.title})
    document = item.document
    extracted = {
        "title": document.title,
        "media_type": document.media_type,
        "language": document.language or None,
        "pages": document.page_spans,
        "metadata": document.metadata,
        "warnings": [],
    }
    return Reading(blobs.read_text(item.markdown), extracted, result["passages"])


def text_hash(text: str) -> bytes:
    """What a wanted vector is known by: the exact text that is sent."""
    return hashlib.sha256(text.encode("utf-8")).digest()


def with_context(context: str, text: str) -> str:
    """A passage under the line that says where it stands; the stored text stays as it is."""
    return f"{context}\n\n{text}" if context else text


def _want(run: IngestionRun, item: RunItem, plan: Plan, reading: Reading, markdown: Blob) -> None:
    passages = reading.passages
    prefix = run.space.embedding_model.document_prefix
    texts = [prefix + with_context(p["context"], reading.markdown[p["start"] : p["end"]]) for p in passages]
    hashes = [text_hash(text) for text in texts]
    with claims.writing(run):
        if not owned(item):
            return
        given = (item.extracted or {}).get("given", {})  # metadata that came with a pushed text
        metadata = {**reading.extracted["metadata"], **given}
        new, missing = _insert_wanted(run, hashes, texts, [passage["tokens"] for passage in passages])
        advance(
            item,
            Stage.EXTRACTED if missing else Stage.EMBEDDED,
            markdown=markdown,
            title=(reading.extracted["title"] or item.title)[:300],
            extracted={**reading.extracted, "metadata": metadata, "given": given, "characters": len(reading.markdown)},
            passages=[[p["start"], p["end"], p["heading_path"], p["tokens"], p["table_header"], p["context"]] for p in passages],
            text_hashes=hashes,
            fingerprints=dict(plan.fingerprints),
            warnings=reading.extracted["warnings"],
            chunks=len(passages),
            embeddings_computed=new,
            embeddings_reused=len(passages) - new,
            tokens=sum(passage["tokens"] for passage in passages),
            error="",
        )
    wakes.wake(run.id, "embed" if missing else "publish", interactive=run.kind == IngestionRun.Kind.PUSH)


def _insert_wanted(run: IngestionRun, hashes: Sequence[bytes], texts: Sequence[str], tokens: Sequence[int]) -> tuple[int, int]:
    """(texts that nobody wanted before, texts that have no vector yet)."""
    unique = {digest: (text, count) for digest, text, count in zip(hashes, texts, tokens, strict=True)}
    with connection.cursor() as cursor:
        cursor.execute(
            _WANT,
            {
                "organization": run.organization_id,
                "space": run.space_id,
                "hashes": list(unique),
                "texts": [text for text, _ in unique.values()],
                "tokens": [count for _, count in unique.values()],
            },
        )
        rows = cursor.fetchall()
    return sum(is_new for _, is_new, _ in rows), sum(not is_paid for _, _, is_paid in rows)


def _fail(run: IngestionRun, item: RunItem, error: ExtractionError) -> None:
    """The document's failure. When its content is at fault, the version that it replaced retires: that text is no longer what stands there."""
    with claims.writing(run):
        if not owned(item):
            return
        close(item, Outcome(Verdict.FAILED, str(error.extra.get("reason", "extraction_failed")), error.message))
        if item.document_id is None:
            return
        document = Document.objects.select_for_update(no_key=True).filter(id=item.document_id, epoch=item.epoch).first()
        if document is None:
            return
        document.last_error = error.message
        if error.retires:
            document.chunks.all().delete()
            document.content_hash = document.markdown = None
            document.chunk_count, document.generation = 0, document.generation + 1
        document.save(update_fields=["last_error", "content_hash", "markdown", "chunk_count", "generation"])


def _segments(run: IngestionRun) -> int:
    return RunItem.objects.filter(run=run).aggregate(total=Sum("embeddings_computed"))["total"] or 0


def _stop_at_segment_limit(run: IngestionRun) -> None:
    with claims.writing(run):
        for item in RunItem.objects.select_for_update(no_key=True).filter(run=run, stage=Stage.FETCHED).order_by("id"):
            close(item, Outcome(Verdict.SKIPPED, "segment_limit", "The run reached settings.max_segments_per_run. Raise it, or run again."))
