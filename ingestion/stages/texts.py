"""Texts under way to their vectors: announced before a call, and after it filled, put off, failed or given back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from ingestion import claims
from ingestion.counters import cost_of
from ingestion.models import EmbeddedText, IngestionRun, ProviderCall
from ingestion.models.embedded_texts import pack_vector
from kb import usage
from kb.models import Usage
from kb.providers.base import Embedded

CALL_MARGIN = 2.0  # seconds between the end of a call and its commit
MAX_FAILURES = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    id: int
    text: str
    tokens: int
    attempts: int


def announce(run: IngestionRun, batch: Sequence[Wanted], *, longest: float = 0.0) -> ProviderCall:
    """The row of a call, and an attempt of each text in it, before it is sent: only what is in flight can kill its worker.

    Raises `ClaimLost`: whoever cancels the run or removes its source waits for the announcement, and no other follows. The texts
    stay leased for the `longest` that the call may take, in seconds, so that nobody else pays for them meanwhile.
    """
    with claims.writing(run):
        scope = {"organization_id": run.organization_id, "knowledge_base_id": run.knowledge_base_id, "space": run.space}
        return note_call(batch, longest=longest, **scope, run=run)


def note_call(batch: Sequence[Wanted], *, longest: float, **values: object) -> ProviderCall:
    """The row of a call with these `values`, and what it means for the texts in it; in the transaction of who may send it."""
    _count(batch, 1)
    lease = timedelta(seconds=max(settings.ENV.lease_seconds, longest + CALL_MARGIN))
    EmbeddedText.objects.filter(id__in=[wanted.id for wanted in batch], vector=None).update(lease_until=timezone.now() + lease)
    return ProviderCall.objects.create(**values, texts=len(batch))


def uncount(batch: Sequence[Wanted]) -> None:
    """The provider answered, so nobody died."""
    _count(batch, -1)


def _count(batch: Sequence[Wanted], number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ingestion_embeddedtext text SET attempts = greatest(text.attempts + %s, 0)"
            " FROM (SELECT id FROM ingestion_embeddedtext WHERE id = ANY(%s) AND vector IS NULL ORDER BY id FOR NO KEY UPDATE) mine"
            " WHERE text.id = mine.id",
            [number, [wanted.id for wanted in batch]],
        )


@transaction.atomic
def keep(call: ProviderCall, batch: list[Wanted], answer: Embedded) -> None:
    """The vectors of a call and what they cost, committed as soon as they are there."""
    _fill(batch, answer.vectors)
    ProviderCall.objects.filter(id=call.id).update(received_at=timezone.now(), tokens=answer.tokens)
    if call.knowledge_base_id is not None:
        usage.charge(
            organization_id=call.organization_id,
            knowledge_bases=[call.knowledge_base_id],
            model=call.space.embedding_model,
            purpose=Usage.Purpose.DOCUMENTS,
            texts=len(batch),
            tokens=answer.tokens,
            cost=cost_of(call.run, answer.tokens, len(batch)) if call.run else None,
        )


def _fill(batch: list[Wanted], vectors: np.ndarray) -> None:
    pairs = sorted(zip(batch, vectors, strict=True), key=lambda pair: pair[0].id)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ingestion_embeddedtext text SET vector = paid.vector, text = NULL, lease_token = NULL, lease_until = NULL,"
            " attempts = 0, failures = 0, used_at = now()"
            " FROM unnest(%s::bigint[], %s::bytea[]) AS paid (id, vector) WHERE text.id = paid.id AND text.vector IS NULL",
            [[wanted.id for wanted, _ in pairs], [pack_vector(vector) for _, vector in pairs]],
        )


def record(call: ProviderCall, message: str) -> None:
    ProviderCall.objects.filter(id=call.id).update(received_at=timezone.now(), error=message[:500])


def back_off(batch: list[Wanted], message: str, *, retry_after: float | None = None) -> None:
    """Wait as long as the provider asks, else longer each time; after many times in a row the texts fail with its words."""
    for row in EmbeddedText.objects.filter(id__in=[wanted.id for wanted in batch], vector=None):
        row.failures += 1
        row.attempts = max(0, row.attempts - 1)
        row.not_before = timezone.now() + timedelta(seconds=retry_after or min(60.0, 0.5 * 2**row.failures))
        row.lease_token = row.lease_until = None
        if row.failures >= MAX_FAILURES:
            row.error = message[:2000]
        row.save(update_fields=["failures", "attempts", "not_before", "lease_token", "lease_until", "error"])


def give_back(token: UUID) -> None:
    """Free what the slice leased and did not get to."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ingestion_embeddedtext SET lease_token = NULL, lease_until = NULL WHERE lease_token = %s AND vector IS NULL", [token]
        )
