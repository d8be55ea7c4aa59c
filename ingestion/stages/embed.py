"""The embed stage: wanted texts → vectors, in batches across the documents of a run, each batch paid once and committed at once."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection

from config.errors import LecternError
from ingestion import claims, limiter, wakes
from ingestion.models import EmbeddedText, IngestionRun, RunItem
from ingestion.outages import insist
from ingestion.paying import Paid, Payer
from ingestion.stages.items import Outcome, close
from ingestion.stages.slices import Slice
from ingestion.stages.texts import Wanted, give_back
from kb.embedding import provider_of
from kb.providers.batches import BatchLimits, make_batches

Stage, Verdict = RunItem.Stage, RunItem.Verdict

POOL = 256  # texts leased at a time: enough to sort by length
WINDOW = 256  # items looked at for wanted texts
SETTLED_OFTEN = 4_000  # texts of a window: settling looks at each, so with more it waits for the end of a pool
MAX_ATTEMPTS = 3

_WINDOW = "SELECT id FROM ingestion_runitem WHERE run_id = %(run)s AND stage = 'extracted' AND id > %(after)s ORDER BY id LIMIT %(window)s"
# Materialised for the reason that `items.take` names.
_TAKE = f"""
    WITH free AS MATERIALIZED (
        SELECT wanted.id FROM ingestion_embeddedtext wanted
         WHERE wanted.organization_id = %(organization)s AND wanted.space_id = %(space)s AND wanted.vector IS NULL AND wanted.error = ''
           AND (wanted.not_before IS NULL OR wanted.not_before <= now())
           AND (wanted.lease_until IS NULL OR wanted.lease_until < now())
           AND wanted.text_hash IN (SELECT unnest(text_hashes) FROM ingestion_runitem WHERE id IN ({_WINDOW}))
         ORDER BY wanted.attempts, wanted.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
    UPDATE ingestion_embeddedtext text
       SET lease_token = %(token)s, lease_until = now() + %(lease)s
      FROM free
     WHERE text.id = free.id
 RETURNING text.id, text.text, text.tokens, text.attempts
"""  # noqa: S608
_FREE = """
    SELECT EXISTS (SELECT 1 FROM ingestion_runitem item, unnest(item.text_hashes) AS wanted (hash), ingestion_embeddedtext text
                    WHERE item.run_id = %(run)s AND item.stage = 'extracted'
                      AND text.organization_id = %(organization)s AND text.space_id = %(space)s AND text.text_hash = wanted.hash
                      AND text.vector IS NULL AND text.error = '' AND (text.not_before IS NULL OR text.not_before <= now())
                      AND (text.lease_until IS NULL OR text.lease_until < now()))
"""
# An item moves on when all its texts have vectors, and fails with the first of its texts that cannot have one.
_PROMOTE = f"""
    UPDATE ingestion_runitem item SET stage = 'embedded', changed_at = now(), lease_token = NULL, lease_until = NULL, attempts = 0
     WHERE item.id IN ({_WINDOW})
       AND NOT EXISTS (SELECT 1 FROM unnest(item.text_hashes) AS wanted (hash)
                         LEFT JOIN ingestion_embeddedtext text
                           ON text.organization_id = %(organization)s AND text.space_id = %(space)s AND text.text_hash = wanted.hash
                        WHERE text.vector IS NULL)
"""  # noqa: S608
_DOOMED = f"""
    SELECT DISTINCT ON (item.id) item.id, text.error
      FROM ingestion_runitem item, unnest(item.text_hashes) AS wanted (hash), ingestion_embeddedtext text
     WHERE item.id IN ({_WINDOW}) AND text.organization_id = %(organization)s AND text.space_id = %(space)s
       AND text.text_hash = wanted.hash AND text.error <> ''
"""  # noqa: S608
_FORGOTTEN = f"""
    UPDATE ingestion_runitem item SET stage = 'fetched', markdown_id = NULL, changed_at = now()
     WHERE item.id IN ({_WINDOW})
       AND EXISTS (SELECT 1 FROM unnest(item.text_hashes) AS wanted (hash)
                    WHERE NOT EXISTS (SELECT 1 FROM ingestion_embeddedtext text WHERE text.organization_id = %(organization)s
                                         AND text.space_id = %(space)s AND text.text_hash = wanted.hash))
"""  # noqa: S608


def work(run: IngestionRun, part: Slice) -> bool:
    """Embed what the run's items wait for until the slice ends. False if nothing could be taken now: the sweep comes back to it."""
    try:
        spec, provider = provider_of(
            run.space.embedding_model, organization_id=run.organization_id, threads=settings.ENV.embed_threads or None
        )
    except LecternError as error:
        _fail_all(run, "embedding_failed", error.message)
        return False
    _embed_all(run, part, Payer(run, spec, provider))
    return not limiter.is_paused(spec) and _is_free(run)


def _embed_all(run: IngestionRun, part: Slice, payer: Payer) -> None:
    after = 0
    promote(run, after)
    while not part.is_over and not limiter.is_paused(payer.spec):
        token = uuid4()
        pool = _take(run, token, after)
        if not pool:
            settle(run, after)
            after = _next_window(run, after)
            if after is None:
                return
            promote(run, after)
            continue
        often = _waiting_texts(run, after) <= SETTLED_OFTEN
        try:
            limits = payer.limits
            for batch in batches_of(pool, limits):
                if part.is_over or not claims.check(run):
                    return
                paid = payer.pay(batch)
                if paid is Paid.NEVER:
                    _fail_all(run, payer.reason, payer.refusal)
                if paid is not Paid.YES:
                    return
                if often:
                    promote(run, after)
                part.beat()
                if payer.limits != limits:
                    break  # the rest is cut anew, by what was learnt
        finally:
            insist(partial(give_back, token))
        if not often:
            promote(run, after)


def _is_free(run: IngestionRun) -> bool:
    """Whether a text that the run waits for could be taken now: not leased by another worker, not put off."""
    with connection.cursor() as cursor:
        cursor.execute(_FREE, {"run": run.id, "organization": run.organization_id, "space": run.space_id})
        return cursor.fetchone()[0]


def _waiting_texts(run: IngestionRun, after: int) -> int:
    window = RunItem.objects.filter(run=run, stage=Stage.EXTRACTED, id__gt=after).order_by("id").values_list("chunks", flat=True)[:WINDOW]
    return sum(window)


def _take(run: IngestionRun, token: UUID, after: int) -> list[Wanted]:
    with claims.writing(run), connection.cursor() as cursor:
        lease = timedelta(seconds=settings.ENV.lease_seconds)
        cursor.execute(_TAKE, {**_scope(run, after), "token": token, "lease": lease, "limit": POOL})
        taken = [Wanted(*row) for row in cursor.fetchall()]
        dead = [wanted.id for wanted in taken if wanted.attempts >= MAX_ATTEMPTS]
        EmbeddedText.objects.filter(id__in=dead).update(error=f"Its worker died {MAX_ATTEMPTS} times.", lease_token=None, lease_until=None)
    # In the order of attempts: what was in flight when a worker died comes last, so that deaths of another cause hit fresh texts.
    return sorted((wanted for wanted in taken if wanted.attempts < MAX_ATTEMPTS), key=lambda wanted: (wanted.attempts, wanted.id))


def batches_of(pool: Sequence[Wanted], limits: BatchLimits) -> list[list[Wanted]]:
    """The pool in batches; a text that was in flight when a worker died goes alone, so that a bad one does not fail its neighbours."""
    fresh = [wanted for wanted in pool if not wanted.attempts]
    batches = [[fresh[index] for index in batch] for batch in make_batches([wanted.tokens for wanted in fresh], limits)]
    return batches + [[wanted] for wanted in pool if wanted.attempts]


def _scope(run: IngestionRun, after: int) -> dict[str, object]:
    return {"run": run.id, "organization": run.organization_id, "space": run.space_id, "after": after, "window": WINDOW}


def _next_window(run: IngestionRun, after: int) -> int | None:
    """The last item of this window if there are items behind it, so that busy texts at the front do not stop the rest."""
    ids = list(
        RunItem.objects.filter(run=run, stage=Stage.EXTRACTED, id__gt=after).order_by("id").values_list("id", flat=True)[: WINDOW + 1]
    )
    return ids[WINDOW - 1] if len(ids) > WINDOW else None


def _fail_all(run: IngestionRun, reason: str, why: str) -> None:
    """Fail every item that waits for vectors which it cannot have now. Those that have them all go on, and texts stay wanted, without an
    error of their own."""
    after: int | None = 0
    while after is not None:
        promote(run, after)
        after = _next_window(run, after)
    with claims.writing(run):
        for item in RunItem.objects.select_for_update(no_key=True).filter(run=run, stage=Stage.EXTRACTED).order_by("id"):
            close(item, Outcome(Verdict.FAILED, reason, why))


def promote(run: IngestionRun, after: int) -> None:
    """Move on the items whose vectors are all there."""
    with claims.writing(run), connection.cursor() as cursor:
        cursor.execute(_PROMOTE, _scope(run, after))
        moved = cursor.rowcount
    if moved:
        wakes.wake(run.id, "publish", rows=moved, interactive=run.kind == IngestionRun.Kind.PUSH)


def settle(run: IngestionRun, after: int) -> None:
    """What else may become of items that wait: one with a text that cannot be embedded fails, one whose texts were collected meanwhile
    goes back to be read again. Looks at every text of the window, so it is done when there is nothing to embed."""
    promote(run, after)
    scope = _scope(run, after)
    with claims.writing(run), connection.cursor() as cursor:
        cursor.execute(_DOOMED, scope)
        doomed = dict(cursor.fetchall())
        for item in RunItem.objects.select_for_update(no_key=True).filter(id__in=doomed, stage=Stage.EXTRACTED).order_by("id"):
            close(item, Outcome(Verdict.FAILED, "embedding_failed", doomed[item.id]))
        cursor.execute(_FORGOTTEN, scope)
