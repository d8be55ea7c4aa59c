"""Texts of stored chunks as another model gets them: wanted in its space, taken to be paid, and read when they are.

`EmbeddedText` is queue and cache here as it is for runs, so a text that a run or an earlier attempt has paid costs nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import connection, transaction

from ingestion.chunk.context import context_line
from ingestion.models import EmbeddedText
from ingestion.models.embedded_texts import unpack_vector
from ingestion.plan import RESERVE_TOKENS
from ingestion.reading import text_hash, with_context
from ingestion.stages.embed import MAX_ATTEMPTS
from ingestion.stages.texts import Wanted
from kb.providers import ModelSpec, document_text, token_counter
from kb.stores.coverage import StoredText

_WANT = """
    INSERT INTO ingestion_embeddedtext (organization_id, space_id, text_hash, text, tokens, attempts, failures, error, used_at)
    SELECT %(organization)s, %(space)s, wanted.hash, wanted.text, wanted.tokens, 0, 0, '', now()
      FROM unnest(%(hashes)s::bytea[], %(texts)s::text[], %(tokens)s::int[]) AS wanted (hash, text, tokens)
     ORDER BY wanted.hash
    ON CONFLICT (organization_id, space_id, text_hash) DO UPDATE SET used_at = now()
"""
_TAKE = """
    WITH free AS MATERIALIZED (
        SELECT id FROM ingestion_embeddedtext
         WHERE organization_id = %(organization)s AND space_id = %(space)s AND text_hash = ANY(%(hashes)s)
           AND vector IS NULL AND error = '' AND (not_before IS NULL OR not_before <= now())
           AND (lease_until IS NULL OR lease_until < now())
         ORDER BY id FOR UPDATE SKIP LOCKED)
    UPDATE ingestion_embeddedtext text SET lease_token = %(token)s, lease_until = now() + %(lease)s FROM free WHERE text.id = free.id
 RETURNING text.id, text.text, text.tokens, text.attempts
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """What is sent of a chunk; `cut`: only its beginning, because the model reads no more."""

    chunk: int
    text: str
    digest: bytes
    tokens: int
    cut: bool


def texts_to_send(stored: Sequence[StoredText], spec: ModelSpec) -> list[Sent]:
    """Each chunk under its line of title and headings, with the model's prefix: as a run would send it, were it cut so."""
    counter = token_counter(spec)
    window = max(1, spec.max_input_tokens - counter.special)
    found = []
    for each in stored:
        context = each.context
        if context is None:
            context = context_line(each.title, each.heading_path, each.text, count=counter.count, reserve=RESERVE_TOKENS)
        text = document_text(spec, with_context(context, each.text))
        tokens = counter.count(text)
        if cut := tokens > window:
            text, tokens = text[: counter.offsets(text)[window - 1][1]], window
        found.append(Sent(each.chunk, text, text_hash(text), tokens, cut))
    return found


def take_unpaid(organization: UUID, space: int, sent: Sequence[Sent], *, token: UUID) -> list[Wanted]:
    """Say that the texts are wanted, and lease those that have no vector and that nobody else is at."""
    texts = {each.digest: each for each in sent}
    scope = {"organization": organization, "space": space, "hashes": list(texts)}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            _WANT, {**scope, "texts": [each.text for each in texts.values()], "tokens": [each.tokens for each in texts.values()]}
        )
        cursor.execute(_TAKE, {**scope, "token": token, "lease": timedelta(seconds=settings.ENV.lease_seconds)})
        taken = [Wanted(*row) for row in cursor.fetchall()]
        dead = [wanted.id for wanted in taken if wanted.attempts >= MAX_ATTEMPTS]
        EmbeddedText.objects.filter(id__in=dead).update(error=f"Its worker died {MAX_ATTEMPTS} times.", lease_token=None, lease_until=None)
    return sorted((wanted for wanted in taken if wanted.attempts < MAX_ATTEMPTS), key=lambda wanted: (wanted.attempts, wanted.id))


def paid_vectors(organization: UUID, space: int, digests: Collection[bytes]) -> Mapping[bytes, np.ndarray]:
    """By text, those that are there."""
    rows = EmbeddedText.objects.filter(organization=organization, space=space, text_hash__in=digests, vector__isnull=False)
    return {bytes(digest): unpack_vector(vector) for digest, vector in rows.values_list("text_hash", "vector")}


def first_refusal(organization: UUID, space: int, digests: Collection[bytes]) -> tuple[bytes, str, int] | None:
    """One of these texts that the model cannot embed, why, and how many there are."""
    rows = EmbeddedText.objects.filter(organization=organization, space=space, text_hash__in=digests).exclude(error="").order_by("id")
    row = rows.values_list("text_hash", "error").first()
    return (bytes(row[0]), row[1], rows.count()) if row else None


def forget_refusals(organization: UUID, space: int) -> None:
    """Texts that could not be embedded are tried again."""
    refused = EmbeddedText.objects.filter(organization=organization, space=space, vector=None)
    refused.update(error="", attempts=0, failures=0, not_before=None)
