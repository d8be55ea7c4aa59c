"""Paying for texts, batch by batch: each call is announced before it is sent, and committed as soon as it is answered.

A batch that the provider refuses for its input is halved, and so on: what is too long for the model is found and fails alone; where
nothing was at fault but the size, the size is remembered for all workers.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from functools import partial

from config.errors import InvalidInput, LecternError, PermanentProviderError, TransientProviderError
from ingestion import limiter
from ingestion.models import EmbeddedText, IngestionRun
from ingestion.outages import insist
from ingestion.stages.texts import Wanted, announce, back_off, keep, record, uncount
from kb import usage
from kb.embedding import spec_of
from kb.models import EmbeddingModel
from kb.providers import BatchLimits, EmbeddingProvider, ModelSpec, Role, document_text, embed_once

log = logging.getLogger(__name__)

INPUT_STATUSES = (400, 413, 422)  # of the provider: a text is at fault, not the key or the model
PLAIN = "A plain sentence."  # what every model can embed


class Paid(Enum):
    YES = "yes"  # each text has its vector, or an error of its own
    LATER = "later"  # the provider, or whoever changed the secret, wants a pause
    NEVER = "never"  # `Payer.refusal` says why no text of the run would fare better


class Payer:
    """Pays for the texts of one run with one provider, for the time of a slice."""

    def __init__(self, run: IngestionRun, spec: ModelSpec, provider: EmbeddingProvider) -> None:
        self.run, self.spec, self.provider = run, spec, provider
        self.limits = limiter.limits_of(spec, provider.limits)
        self.reason = self.refusal = ""
        self._accepted = False  # whether the provider took anything of this slice
        self._at_fault = 0  # texts that it refused alone

    def pay(self, batch: list[Wanted]) -> Paid:
        if why := usage.spending(self.run.knowledge_base_id).exhausted:
            return self._never("budget_exhausted", why)
        call = announce(self.run, batch, longest=self.provider.longest_call)
        try:
            answer = embed_once(self.provider, self.spec, [wanted.text for wanted in batch], Role.DOCUMENT)
        except TransientProviderError as error:
            record(call, error.message)
            back_off(batch, error.message, retry_after=error.retry_after)
            limiter.pause(self.spec, error.retry_after or 1.0)
            return Paid.LATER
        except (PermanentProviderError, InvalidInput) as error:  # also an endpoint that leads to an address which is refused
            record(call, error.message)
            uncount(batch)
            return self._refused(batch, error)
        except Exception as error:
            # Of ours, and no death. Alone, the text that stops our code is found; the others are saved.
            log.exception("A batch of %d texts of run %s could not be embedded.", len(batch), self.run.id)
            message = f"Embedding stopped with {type(error).__name__}: {error}"
            record(call, message)
            if len(batch) > 1:
                uncount(batch)
                return self._halve(batch)
            back_off(batch, message)
            self._at_fault += 1
            return Paid.YES
        # Paid is paid: also a database that restarts meanwhile and a run that was closed leave the vectors to whoever wants the text next.
        insist(partial(keep, call, batch, answer))
        self._accepted = True
        return Paid.YES

    def _refused(self, batch: list[Wanted], error: LecternError) -> Paid:
        if error.extra.get("upstream_status") not in INPUT_STATUSES:
            return Paid.LATER if self._is_outdated() else self._never("embedding_failed", error.message)
        if not self._accepted and (paid := self._try_plain()) is not Paid.YES:
            return paid
        if len(batch) > 1:
            return self._halve(batch)
        self._at_fault += 1
        EmbeddedText.objects.filter(id=batch[0].id, vector=None).update(error=error.message[:2000], lease_token=None, lease_until=None)
        return Paid.YES

    def _halve(self, batch: list[Wanted]) -> Paid:
        at_fault, middle = self._at_fault, (len(batch) + 1) // 2
        for half in (batch[:middle], batch[middle:]):
            if (paid := self.pay(half)) is not Paid.YES:
                return paid
        if self._at_fault == at_fault:
            self._learn(batch[:middle], batch[middle:])
        return Paid.YES

    def _learn(self, *halves: Sequence[Wanted]) -> None:
        """Nothing was wrong but the size. Within a halving of a halving the smaller size is learnt first, and stays."""
        texts, tokens = max(map(len, halves)), max(sum(wanted.tokens for wanted in half) for half in halves)
        self.limits = BatchLimits(min(self.limits.max_texts, texts), max(1, min(self.limits.max_tokens, tokens)))
        limiter.learn(self.spec, self.limits)

    def _try_plain(self) -> Paid:
        """A provider that refuses a plain sentence too finds fault with the settings, and no text is to blame."""
        call = announce(self.run, [], longest=self.provider.longest_call)
        try:
            answer = embed_once(self.provider, self.spec, [document_text(self.spec, PLAIN)], Role.DOCUMENT)
        except TransientProviderError as error:
            record(call, error.message)
            limiter.pause(self.spec, error.retry_after or 1.0)
            return Paid.LATER
        except (PermanentProviderError, InvalidInput) as error:
            record(call, error.message)
            return self._never("embedding_failed", error.message)
        insist(partial(keep, call, [], replace(answer, vectors=answer.vectors[:0])))
        self._accepted = True
        return Paid.YES

    def _is_outdated(self) -> bool:
        """Whether the secret or the model was changed since the slice began: then the next one knows better."""
        model = EmbeddingModel.objects.filter(id=self.run.space.embedding_model_id).first()
        try:
            return model is not None and spec_of(model, organization_id=self.run.organization_id) != self.spec
        except LecternError:
            return False  # the secret is gone: what the provider said of the old one is true enough

    def _never(self, reason: str, why: str) -> Paid:
        self.reason, self.refusal = reason, why
        return Paid.NEVER
