"""Between extracting and cutting, for files whose text has to be recognized: which parts are wanted, and what they make together.

The stage `recognize` works the parts; here are the two ends of an item's way through it."""

import json
from collections.abc import Sequence

from django.db import connection

from config.errors import ExtractionError
from ingestion import claims, wakes
from ingestion.extract.extraction import cut_text
from ingestion.models import IngestionRun, RecognizedPart, RunItem
from ingestion.plan import plan_for
from ingestion.reading import Parted
from ingestion.recognize.joining import Joined, ReadPart, join
from ingestion.stages.failing import fail
from ingestion.stages.items import advance, lock_stage, own
from kb import blobs

Stage = RunItem.Stage

# A part that failed before is tried anew; one that was read is only marked as used.
_WANT = """
    INSERT INTO ingestion_recognizedpart
           (organization_id, content_hash, recipe, position, kind, page, start, "end", text, details,
            attempts, failures, error, retires, used_at)
    SELECT %(organization)s, %(hash)s, %(recipe)s, part.position, part.kind, part.page, part.start, part."end", part.text, '{}',
           0, 0, '', false, now()
      FROM jsonb_to_recordset(%(parts)s::jsonb)
        AS part (position int, kind text, page int, start float, "end" float, text text)
     ORDER BY part.position
    ON CONFLICT (organization_id, content_hash, recipe, position) DO UPDATE
       SET used_at = now(), error = '', failures = 0, retires = false,
           attempts = CASE WHEN ingestion_recognizedpart.error = '' THEN ingestion_recognizedpart.attempts ELSE 0 END
"""
# Items whose parts are all read or given up; also those whose parts were collected meanwhile, which are read again.
_READY = """
    SELECT item.id, count(part.id) = item.parts
      FROM ingestion_runitem item JOIN kb_blob blob ON blob.id = item.blob_id
      LEFT JOIN ingestion_recognizedpart part
        ON part.organization_id = item.organization_id AND part.content_hash = blob.sha256 AND part.recipe = item.recipe
       AND part.position < item.parts
     WHERE item.run_id = %(run)s AND item.stage = 'parted'
     GROUP BY item.id
    HAVING count(part.id) < item.parts OR count(part.id) FILTER (WHERE part.text IS NULL AND part.error = '') = 0
"""


def part(run: IngestionRun, found: Sequence[Parted]) -> None:
    """Say which parts are wanted, and let the items wait for them."""
    with claims.writing(run), connection.cursor() as cursor:
        held = {item.id for item in own(run, [each.item for each in found])}
        moves = []
        for each in found:
            item = each.item
            if item.id not in held:
                continue
            rows = [
                {"position": position, "kind": one.kind, "page": one.page, "start": one.start, "end": one.end, "text": one.text}
                for position, one in enumerate(each.parts)
            ]
            scope = {"organization": run.organization_id, "hash": bytes(item.blob.sha256), "recipe": each.recipe}
            cursor.execute(_WANT, {**scope, "parts": json.dumps(rows)})
            given = (item.extracted or {}).get("given", {})
            values = {"recipe": each.recipe, "parts": len(rows), "extracted": {**each.extracted, "given": given}}
            moves.append((item, {**values, "title": (each.extracted["title"] or item.title)[:300]}))
        if moves:
            advance(Stage.PARTED, moves)
    waiting = sum(values["parts"] for _, values in moves)
    wakes.wake(run.id, "recognize", rows=max(1, waiting), interactive=run.kind == IngestionRun.Kind.PUSH)


def settle(run: IngestionRun) -> int:
    """Move on the items that wait for no part any more; how many."""
    with connection.cursor() as cursor:
        cursor.execute(_READY, {"run": run.id})
        ready = dict(cursor.fetchall())
    for item in RunItem.objects.filter(id__in=ready, stage=Stage.PARTED).select_related("blob", "document__file").order_by("id"):
        if ready[item.id]:
            _finish(run, item)
        else:
            _read_again(run, item)
    if ready:
        wakes.wake(run.id, "extract", rows=len(ready), interactive=run.kind == IngestionRun.Kind.PUSH)
    return len(ready)


def parts_of(item: RunItem):
    """The rows of an item's parts."""
    return RecognizedPart.objects.filter(
        organization_id=item.organization_id, content_hash=bytes(item.blob.sha256), recipe=item.recipe, position__lt=item.parts
    )


def _finish(run: IngestionRun, item: RunItem) -> None:
    rows = list(parts_of(item).order_by("position"))
    joined = join([_read(row) for row in rows])
    if not joined.markdown:
        with claims.writing(run):
            if lock_stage(item, Stage.PARTED):
                fail(run, item, _nothing(item, rows))
        return
    text, extracted = _cut(joined, item, limit=plan_for(run, item.policy).settings.max_content_length)
    markdown = blobs.store_bytes(run.organization_id, text.encode("utf-8"))
    with claims.writing(run):
        if lock_stage(item, Stage.PARTED):
            advance(Stage.FETCHED, [(item, {"markdown": markdown, "extracted": extracted})])


def _read_again(run: IngestionRun, item: RunItem) -> None:
    with claims.writing(run):
        if lock_stage(item, Stage.PARTED):
            advance(Stage.FETCHED, [(item, {"markdown": None})])


def _read(row: RecognizedPart) -> ReadPart:
    return ReadPart(row.kind, row.position, row.page, row.start, row.end, row.text or "", row.details, row.error, row.retires)


def _cut(joined: Joined, item: RunItem, *, limit: int) -> tuple[str, dict[str, object]]:
    """What is kept under the limit of characters, and what is said of it."""
    text, warnings, truncated = joined.markdown, [*item.extracted["warnings"], *joined.warnings], item.extracted["truncated"]
    if len(text) > limit:
        text, truncated = cut_text(text, limit=limit), True
        warnings.append(
            f"Only the first {len(text):,} characters were kept. Raise the limit of characters per document, or split the file."
        )
    pages = [{"page": span.page, "start": span.start, "end": min(span.end, len(text))} for span in joined.pages if span.start < len(text)]
    metadata = {**item.extracted["metadata"], **joined.metadata}
    return text, {**item.extracted, "pages": pages, "metadata": metadata, "warnings": warnings, "truncated": truncated, "joined": True}


def _nothing(item: RunItem, rows: Sequence[RecognizedPart]) -> ExtractionError:
    """Nothing was recognized: what failed says why; else there is nothing to be recognized, and nothing is invented."""
    name = item.file_name
    if failed := [row for row in rows if row.error]:
        return ExtractionError(failed[0].error, reason="not_recognized", retires=all(row.retires for row in failed))
    if all(row.kind == RecognizedPart.Kind.SPEECH for row in rows):
        happened, advice = f"No speech was recognized in {name}.", "Upload a recording in which somebody speaks."
    else:
        happened, advice = f"No text was recognized in {name}.", "Upload a sharper picture, or a file with text."
    return ExtractionError(happened, advice=advice, reason="no_text", retires=True)
