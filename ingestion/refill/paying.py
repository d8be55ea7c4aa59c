"""Paying for texts of a change: in batches, each announced before it is sent and committed at once, as in the embed stage."""

import logging
from functools import partial
from uuid import uuid4

from config.errors import InvalidInput, PermanentProviderError, TransientProviderError
from ingestion import limiter, wakes
from ingestion.models import EmbeddedText
from ingestion.outages import insist
from ingestion.paying import INPUT_STATUSES
from ingestion.refill.part import Part, Waits, writing
from ingestion.refill.texts import Sent, take_unpaid
from ingestion.stages.embed import batches_of
from ingestion.stages.texts import Wanted, give_back, keep, note_call, record, uncount
from kb import usage
from kb.models import SpaceChange
from kb.providers import Role, embed_once

log = logging.getLogger(__name__)

STAGE = "refill"


def pay(part: Part, sent: list[Sent]) -> tuple[int, bool]:
    """(how many texts were paid, whether each that was free was tried)."""
    token = uuid4()
    computed = 0
    pool = take_unpaid(*part.texts.values(), sent, token=token)
    try:
        for batch in batches_of(pool, limiter.limits_of(part.spec, part.provider.limits)):
            if part.is_over:
                return computed, False
            if limiter.is_paused(part.spec):
                raise Waits(1.0)
            computed += _pay_batch(part, batch)
            wakes.hold(STAGE, part.token)
    finally:
        insist(partial(give_back, token))
    return computed, True


def _pay_batch(part: Part, batch: list[Wanted]) -> int:
    if why := usage.spending(part.change.knowledge_base_id).exhausted:
        raise PermanentProviderError(why, reason="budget_exhausted")
    longest = part.provider.longest_call
    with writing(part, longest=longest) as change:
        call = note_call(batch, longest=longest, **_scope(change))
    try:
        answer = embed_once(part.provider, part.spec, [wanted.text for wanted in batch], Role.DOCUMENT)
    except TransientProviderError as error:
        record(call, error.message)
        uncount(batch)
        limiter.pause(part.spec, error.retry_after or 1.0)
        raise Waits(error.retry_after or 1.0, error.message) from error
    except (PermanentProviderError, InvalidInput) as error:
        record(call, error.message)
        uncount(batch)
        if error.extra.get("upstream_status") not in INPUT_STATUSES:
            raise  # the key, the model or the settings: no text would fare better
        if len(batch) > 1:
            return sum(_pay_batch(part, [wanted]) for wanted in batch)
        EmbeddedText.objects.filter(id=batch[0].id, vector=None).update(error=error.message[:2000])
        return 0
    except Exception as error:
        log.exception("A batch of %d texts of change %s could not be embedded.", len(batch), part.change.id)
        record(call, f"Embedding stopped with {type(error).__name__}: {error}")
        uncount(batch)
        raise
    insist(partial(keep, call, batch, answer))
    return len(batch)


def _scope(change: SpaceChange) -> dict[str, object]:
    return {"organization_id": change.organization_id, "knowledge_base_id": change.knowledge_base_id, "space": change.to_space}
