"""The first answer to a request that named an idempotency key, kept for those who ask again with it.

A key is one line of `kb_idempotencykey`, taken before the work is done and filled afterwards. The row decides: of two requests
with one key one inserts it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError
from django.utils import timezone

from config.errors import Conflict, IdempotencyMismatch
from kb.access import Actor
from kb.models import IdempotencyKey

# A request that has not answered for so long died with its process; another may take its key over.
ABANDONED_AFTER = timedelta(minutes=1)
RETRY_AFTER = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """As it was sent: `body` is the rendered text, because JSON columns forget the order of keys."""

    status: int
    body: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to do the work of a key, until another request takes it over."""

    row: IdempotencyKey

    def keep(self, answer: Answer) -> None:
        """Keep the answer. Raises `Conflict` if the claim was taken over: what was done meanwhile must be rolled back or stay alone."""
        response = {"body": answer.body, "headers": dict(answer.headers)}
        if not self._mine().update(status=answer.status, response=response):
            raise Conflict("Another request with this Idempotency-Key took over, because this one took too long. Read what it made.")

    def release(self) -> None:
        """Free the key: nothing was done, so the same request may come again."""
        self._mine().delete()

    def _mine(self):
        return IdempotencyKey.objects.filter(id=self.row.id, created_at=self.row.created_at, status=None)


def claim(actor: Actor, *, key: str, route: str, body_digest: bytes) -> Claim | Answer:
    """The claim of a new key, or the answer that an earlier request got.

    Keys are told apart by organization, route and who asks: nobody is handed the answer of somebody else. Raises
    `IdempotencyMismatch` for another body, `Conflict` while the first request is still under way.
    """
    digest = _digest(str(actor.organization.id), route, _identity(actor), key)
    now = timezone.now()
    try:
        row, created = IdempotencyKey.objects.get_or_create(
            organization=actor.organization, key_digest=digest, defaults={"body_digest": body_digest}
        )
    except IntegrityError:  # the other request ended and freed its key between the insert and the look
        raise _under_way() from None
    if created:
        return Claim(row)
    if bytes(row.body_digest) != body_digest:
        raise IdempotencyMismatch("This Idempotency-Key was used with another request. Use a new key for a new request.")
    if row.status is not None:
        return Answer(row.status, row.response["body"], row.response["headers"])
    if now - row.created_at > ABANDONED_AFTER:
        taken = IdempotencyKey.objects.filter(id=row.id, created_at=row.created_at, status=None).update(created_at=now)
        if taken:
            row.created_at = now
            return Claim(row)
    raise _under_way()


def _under_way() -> Conflict:
    return Conflict("A request with this Idempotency-Key is still under way. Ask again in a moment.", retry_after=RETRY_AFTER)


def _identity(actor: Actor) -> str:
    if actor.api_key:
        return f"key {actor.api_key.id}"
    return f"user {actor.user.pk}" if actor.user else "system"


def _digest(*parts: str) -> bytes:
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.digest()
