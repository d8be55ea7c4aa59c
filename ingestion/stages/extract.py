"""The extract stage: stored bytes → Markdown → passages → wanted texts, in a child process with limits."""

import logging
import time
from collections.abc import Mapping

from django.db import DataError, connection
from django.db.models import Sum

from config.errors import ExtractionError, Unavailable
from ingestion import claims, wakes
from ingestion.attachments import add_attachments
from ingestion.models import IngestionRun, RunItem
from ingestion.outboxes import keep_files
from ingestion.plan import Plan, plan_for
from ingestion.reading import Parted, Reading, read_items, text_hash
from ingestion.sources.web import frontier, pages
from ingestion.stages import parting
from ingestion.stages.failing import fail
from ingestion.stages.items import Outcome, advance, close, close_superseded, give_back, own, postpone, take
from ingestion.stages.policies import by_plan, store_items
from ingestion.stages.slices import Slice
from kb import blobs
from kb.models import Blob, Source

log = logging.getLogger(__name__)
Stage, Verdict = RunItem.Stage, RunItem.Verdict
RETRY_SECONDS = 10.0
BATCH = 32  # items taken together: small files cost less together than each alone
BATCHES_BETWEEN_COUNTS = 8  # counting reads every item of the run; a limit is passed by a few documents at most
LINGER_SECONDS = 0.5
BATCH_SECONDS = 2.0  # what is not read by then goes back to whoever is free

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


def work(run: IngestionRun, part: Slice) -> None:
    """Extract items of the run, a handful at a time, until the slice ends."""
    plan = plan_for(run)
    looked = segments = 0
    while not part.is_over:
        if looked % BATCHES_BETWEEN_COUNTS == 0:
            segments = _segments(run)
        looked += 1
        if segments >= plan.settings.max_segments_per_run:
            _stop_at_segment_limit(run)
            return
        items = take(run, Stage.FETCHED, token=part.lease, limit=BATCH, related=("blob", "markdown", "document__file"))
        if not items:
            if _comes_more(run, part):
                continue
            return
        for each, group in by_plan(run, items, plan):
            if each.policy.mode == "store":
                store_items(run, group, each)
            else:
                extract_items(run, group, each)
        part.beat()


def _comes_more(run: IngestionRun, part: Slice) -> bool:
    """Whether to look again: pages of a crawl come one by one, and a message for each would cost more than waiting a moment."""
    if run.source.kind != Source.Kind.WEB:
        return False
    until = time.monotonic() + LINGER_SECONDS
    while not part.is_over and time.monotonic() < until:
        time.sleep(LINGER_SECONDS / 10)
        if RunItem.objects.filter(run=run, stage=Stage.FETCHED, lease_until=None).exists():
            return True
    return False


def extract_items(run: IngestionRun, items: list[RunItem], plan: Plan) -> None:
    """Read, cut and say which vectors are wanted; any failure becomes its item's verdict."""
    if gone := [item for item in items if item.document_id and item.document is None]:
        with claims.writing(run):
            close_superseded(run, gone)
        items = [item for item in items if item not in gone]
    readings: list[Reading] = []
    parted: list[Parted] = []
    known = {item.id: digest for item in items if item.url and (digest := pages.known_hash(item, run, plan))}
    results = read_items(items, plan, seconds=BATCH_SECONDS, known=known, keep=keep_files) if items else []
    for item, result in zip(items, results, strict=False):
        if isinstance(result, Reading):
            readings.append(result)
        elif isinstance(result, Parted):
            parted.append(result)
        elif isinstance(result, ExtractionError):
            fail(run, item, result)
        else:
            postpone(item, RETRY_SECONDS, result.message)
    if late := items[len(results) :]:
        give_back(late)
    if parted:
        parting.part(run, parted)
    if readings:
        _store(run, [pages.judge(run, reading, plan) for reading in readings], plan)


def _store(run: IngestionRun, read: list[pages.Read], plan: Plan) -> None:
    """What was read of pages is written with their links in one transaction, so that no page counts as read before its links are known."""
    readings = [each.reading for each in read if not each.verdict]
    attached = 0
    try:
        new = [reading.markdown for reading in readings if reading.item.markdown_id is None]
        stored = dict(zip(new, blobs.store_texts(run.organization_id, new), strict=True))
        with claims.writing(run):
            if run.source.kind == Source.Kind.WEB:
                pages.write(run, read)
            if readings:
                attached = _want(run, readings, plan, stored)
    except DataError:
        # The database refuses a value of one of them: alone it is found, and the others are saved.
        if len(read) > 1:
            for each in read:
                _store(run, [each], plan)
            return
        log.exception("What was read of %s cannot be stored.", read[0].reading.item)
        error = ExtractionError("What was read of the file cannot be stored. Please report the file's format.", reason="internal")
        fail(run, read[0].reading.item, error)
        return
    except Unavailable as error:
        for each in read:
            postpone(each.reading.item, RETRY_SECONDS, error.message)
        return
    interactive = run.kind == IngestionRun.Kind.PUSH
    if any(each.render for each in read) or (any(each.found for each in read) and frontier.level(run).is_open):
        wakes.wake(run.id, "crawl")
    if attached:
        wakes.wake(run.id, "extract", interactive=interactive)
    wakes.wake(run.id, "embed", interactive=interactive)
    wakes.wake(run.id, "publish", interactive=interactive)


def _want(run: IngestionRun, readings: list[Reading], plan: Plan, stored: Mapping[str, Blob]) -> int:
    """Say which vectors are wanted, and move the items on: to `embedded` at once where every vector is there already. Returns how many
    attachments wait to be read themselves."""
    held = {item.id for item in own(run, [reading.item for reading in readings])}
    readings = [reading for reading in readings if reading.item.id in held]
    prefix = run.space.embedding_model.document_prefix
    texts = {reading.item.id: [prefix + text for text in reading.texts()] for reading in readings}
    hashes = {identifier: [text_hash(text) for text in found] for identifier, found in texts.items()}
    new, missing = _insert_wanted(
        run,
        {
            digest: (text, passage["tokens"])
            for reading in readings
            for digest, text, passage in zip(hashes[reading.item.id], texts[reading.item.id], reading.passages, strict=True)
        },
    )
    waiting, complete = [], []
    attached = 0
    for reading in readings:
        attached += add_attachments(run, reading.item, reading.extracted.get("files", ()), plan)
        mine = hashes[reading.item.id]
        first = new.intersection(mine)
        new -= first  # counted once, for the document that came first
        markdown = reading.item.markdown or stored[reading.markdown]
        move = (reading.item, _values(reading, plan, markdown=markdown, text_hashes=mine, computed=len(first)))
        (waiting if missing.intersection(mine) else complete).append(move)
    advance(Stage.EXTRACTED, waiting)
    advance(Stage.EMBEDDED, complete)
    return attached


def _values(reading: Reading, plan: Plan, *, markdown: Blob, text_hashes: list[bytes], computed: int) -> dict[str, object]:
    item, extracted, passages = reading.item, reading.extracted, reading.passages
    given = (item.extracted or {}).get("given", {})  # metadata that came with a pushed text
    return {
        "markdown": markdown,
        "title": (extracted["title"] or item.title)[:300],
        "extracted": {**extracted, "metadata": {**extracted["metadata"], **given}, "given": given, "characters": len(reading.markdown)},
        "passages": [[p["start"], p["end"], p["heading_path"], p["tokens"], p["table_header"], p["context"]] for p in passages],
        "text_hashes": text_hashes,
        "fingerprints": dict(plan.fingerprints),
        "warnings": extracted["warnings"],
        "content_hash": item.content_hash,  # of a page: of its text, and not of its bytes
        "chunks": len(passages),
        "embeddings_computed": computed,
        "embeddings_reused": len(passages) - computed,
        "tokens": sum(passage["tokens"] for passage in passages),
        "error": "",
    }


def _insert_wanted(run: IngestionRun, wanted: Mapping[bytes, tuple[str, int]]) -> tuple[set[bytes], set[bytes]]:
    """(hashes that nobody wanted before, hashes that have no vector yet)."""
    with connection.cursor() as cursor:
        cursor.execute(
            _WANT,
            {
                "organization": run.organization_id,
                "space": run.space_id,
                "hashes": list(wanted),
                "texts": [text for text, _ in wanted.values()],
                "tokens": [count for _, count in wanted.values()],
            },
        )
        rows = [(bytes(digest), is_new, is_paid) for digest, is_new, is_paid in cursor.fetchall()]
    return {digest for digest, is_new, _ in rows if is_new}, {digest for digest, _, is_paid in rows if not is_paid}


def _segments(run: IngestionRun) -> int:
    return RunItem.objects.filter(run=run).aggregate(total=Sum("embeddings_computed"))["total"] or 0


def _stop_at_segment_limit(run: IngestionRun) -> None:
    with claims.writing(run):
        for item in RunItem.objects.select_for_update(no_key=True).filter(run=run, stage=Stage.FETCHED).order_by("id"):
            close(item, Outcome(Verdict.SKIPPED, "segment_limit", "The run reached settings.max_segments_per_run. Raise it, or run again."))
