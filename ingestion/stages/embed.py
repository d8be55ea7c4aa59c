"""The embed stage: wanted texts → vectors, in batches across the documents of a run, each batch paid once and committed at once."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection

from config.errors import InvalidInput, LecternError, PermanentProviderError, TransientProviderError
from ingestion import claims, limiter, wakes
from ingestion.models import EmbeddedText, IngestionRun, RunItem
from ingestion.outages import insist
from ingestion.stages.items import Outcome, close
from ingestion.stages.slices import Slice
from ingestion.stages.texts import Wanted, announce, back_off, give_back, keep, record, uncount
from kb.embedding import provider_of
from kb.providers import ModelSpec, Role, embed
from kb.providers.base import EmbeddingProvider
from kb.providers.batches import BatchLimits, make_batches

log = logging.getLogger(__name__)
Stage, Verdict = RunItem.Stage, RunItem.Verdict

POOL = 256  # texts leased at a time: enough to sort by length
WINDOW = 256  # items looked at for wanted texts
SETTLED_OFTEN = 4_000  # texts of a window: settling looks at each, so with more it waits for the end of a pool
MAX_ATTEMPTS = 3
INPUT_STATUSES = (400, 413, 422)  # of the provider: a text is at fault, not the key or the model

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
        _refuse_all(run, error)
        return False
    _embed_all(run, part, spec, provider)
    return not limiter.is_paused(spec) and _is_free(run)


def _embed_all(run: IngestionRun, part: Slice, spec: ModelSpec, provider: EmbeddingProvider) -> None:
    after = 0
    promote(run, after)
    while not part.is_over and not limiter.is_paused(spec):
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
            for batch in batches_of(pool, provider.limits):
                if part.is_over or not claims.check(run):
                    return
                if not _embed_batch(run, spec, provider, batch, token):
                    return
                if often:
                    promote(run, after)
                part.beat()
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


def _embed_batch(run: IngestionRun, spec: ModelSpec, provider: EmbeddingProvider, batch: list[Wanted], token: UUID) -> bool:
    """Pay for one batch and commit it. False when the provider wants a pause."""
    call = announce(run, batch, longest=provider.longest_call)
    try:
        answer = embed(provider, spec, [wanted.text for wanted in batch], Role.DOCUMENT)
    except TransientProviderError as error:
        record(call, error.message)
        back_off(batch, error.message, retry_after=error.retry_after)
        limiter.pause(spec, error.retry_after or 1.0)
        return False
    except (PermanentProviderError, InvalidInput) as error:  # also an endpoint that leads to an address which is refused
        record(call, error.message)
        uncount(batch)
        about_input = error.extra.get("upstream_status") in INPUT_STATUSES
        if len(batch) > 1 and about_input:
            # One text of the batch is at fault; alone it is found, and the others are saved.
            return all(_embed_batch(run, spec, provider, [wanted], token) for wanted in batch)
        if not about_input:
            _refuse_all(run, error)  # the key, the model or the settings: no text would fare better
            return False
        EmbeddedText.objects.filter(id=batch[0].id, vector=None).update(error=error.message[:2000], lease_token=None, lease_until=None)
        return True
    except Exception as error:
        # Of ours, and no death. Alone, the text that stops our code is found; the others are saved.
        log.exception("A batch of %d texts of run %s could not be embedded.", len(batch), run.id)
        message = f"Embedding stopped with {type(error).__name__}: {error}"
        record(call, message)
        if len(batch) > 1:
            uncount(batch)
            return all(_embed_batch(run, spec, provider, [wanted], token) for wanted in batch)
        back_off(batch, message)
        return True
    # Paid is paid: also a database that restarts meanwhile and a run that was closed leave the vectors to whoever wants the text next.
    insist(partial(keep, call, batch, answer))
    return True


def _refuse_all(run: IngestionRun, error: LecternError) -> None:
    """Fail every item that waits for this provider. The texts stay wanted, without an error of their own."""
    with claims.writing(run):
        for item in RunItem.objects.select_for_update(no_key=True).filter(run=run, stage=Stage.EXTRACTED).order_by("id"):
            close(item, Outcome(Verdict.FAILED, "embedding_failed", error.message))


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
