"""What every provider of rerankers is, and the one way to call it.

A provider scores one request's worth of passages; `rerank` cuts the list into such and checks what comes back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from config.errors import PermanentProviderError, TransientProviderError


@dataclass(frozen=True, slots=True)
class RerankerSpec:
    """A registered reranker with its secret already resolved. `trusted` endpoints may lie in private networks; `timeout` in seconds."""

    name: str
    provider: str
    model: str
    endpoint: str | None = None
    credential: str | None = field(default=None, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)  # compared, not hashed: specs key the process's cache
    timeout: float = 2.0
    trusted: bool = False


class RerankerProvider(Protocol):
    """Constructed as `Provider(spec)`, which loads nothing; safe to call from several threads."""

    most_passages: int  # in one call of `score`

    def score(self, query: str, passages: Sequence[str], *, seconds: float) -> Sequence[float]:
        """Probabilities (0–1) that each passage answers the query, in the order of the passages. `Late` after `seconds`."""
        ...


class Late(TransientProviderError):
    """There was no answer in time."""


def late(spec: RerankerSpec) -> Late:
    return Late(f"The reranker {spec.name} did not answer within {spec.timeout:g} s. Raise its timeout, or let it read fewer candidates.")


def rerank(provider: RerankerProvider, spec: RerankerSpec, query: str, passages: Sequence[str], *, seconds: float = 0.0) -> list[float]:
    """A probability for each passage, all within `seconds` (0: the reranker's own timeout). Raises `Late`, `ProviderError` and other
    `LecternError`s, whose messages may be shown."""
    end = time.monotonic() + (seconds or spec.timeout)
    scores: list[float] = []
    while len(scores) < len(passages):
        batch = passages[len(scores) : len(scores) + provider.most_passages]
        left = end - time.monotonic()
        if left <= 0:
            raise late(spec)
        answer = provider.score(query, batch, seconds=left)
        scores += _checked(answer, spec=spec, expected=len(batch))
    return scores


def sigmoid(logit: float) -> float:
    """The probability of a logit, without overflow."""
    return 1.0 / (1.0 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1.0 + math.exp(logit))


def _checked(scores: Sequence[float], *, spec: RerankerSpec, expected: int) -> list[float]:
    if len(scores) != expected:
        raise PermanentProviderError(f"The reranker {spec.name} was given {expected} passages and scored {len(scores)}.")
    for score in scores:
        if not math.isfinite(score):
            raise PermanentProviderError(f"The reranker {spec.name} gave a score that is no number. Check the model.")
        if not 0 <= score <= 1:
            raise PermanentProviderError(
                f"The reranker {spec.name} gave the score {score:g}, which is no probability. If it answers with logits, set "
                "parameters.scores to logits."
            )
    return [float(score) for score in scores]
