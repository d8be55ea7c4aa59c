"""What every embedding provider is, and the one way to call it.

A provider embeds one batch; `embed` cuts texts into batches and checks what comes back, so that no provider repeats either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from config.errors import InvalidInput, PermanentProviderError
from kb.providers.batches import BatchLimits, make_batches
from kb.providers.tokens import ESTIMATE

_MOST_TOKENS = 2**40  # of a server that says anything


class Role(StrEnum):
    DOCUMENT = "document"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A registered embedding model with its secret already resolved. `trusted` endpoints may lie in private networks."""

    name: str
    provider: str
    model: str
    dimension: int
    max_input_tokens: int
    endpoint: str | None = None
    credential: str | None = field(default=None, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)  # compared, not hashed: specs key the process's cache
    query_prefix: str = ""
    document_prefix: str = ""
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors as float32 [n, dimension] in the order of the texts, of length 1 from `embed`; `tokens` as the provider counts."""

    vectors: np.ndarray
    tokens: int


class EmbeddingProvider(Protocol):
    """Constructed as `Provider(spec, threads=None)`; safe to call from several threads."""

    limits: BatchLimits
    longest_call: float  # seconds after which a call has ended, one way or the other; 0 where it is only work of this process

    def embed_batch(self, texts: Sequence[str], role: Role) -> Embedded: ...


def document_text(spec: ModelSpec, text: str) -> str:
    """The exact text sent for a passage: what is hashed, stored and paid for."""
    return spec.document_prefix + text


def embed(provider: EmbeddingProvider, spec: ModelSpec, texts: Sequence[str], role: Role) -> Embedded:
    """Vectors of length 1 for texts that already carry their prefix, in their order, in as many calls as the provider's limits want."""
    vectors = np.zeros((len(texts), spec.dimension), dtype=np.float32)
    tokens = 0
    for batch in make_batches([ESTIMATE.count(text) for text in texts], provider.limits):
        answer = embed_once(provider, spec, [texts[i] for i in batch], role)
        vectors[batch] = answer.vectors
        tokens += answer.tokens
    return Embedded(vectors=vectors, tokens=tokens)


def embed_once(provider: EmbeddingProvider, spec: ModelSpec, texts: Sequence[str], role: Role) -> Embedded:
    """The same in one call. Tokens are estimated where the provider does not say them.

    A wrong number of vectors, another dimension than the registered one, and values that are no numbers are PermanentProviderError.
    """
    answer = provider.embed_batch(texts, role)
    vectors = _check_vectors(answer.vectors, spec=spec, expected=len(texts))
    tokens = min(answer.tokens, _MOST_TOKENS) if answer.tokens > 0 else sum(ESTIMATE.count(text) for text in texts)
    return Embedded(vectors=vectors, tokens=tokens)


def embed_query(provider: EmbeddingProvider, spec: ModelSpec, text: str) -> Embedded:
    """The vector of a question, as the only one of `vectors`; its prefix is added here."""
    return embed_once(provider, spec, [spec.query_prefix + text], Role.QUERY)


def check_settings(spec: ModelSpec, *, parameters: frozenset[str], remote: bool) -> None:
    """Refuse what the provider would silently ignore: unknown parameters, and an address or a key for a model that has neither."""
    unknown = sorted(set(spec.parameters) - parameters)
    if unknown:
        raise InvalidInput(
            f"The provider {spec.provider} has no parameter {', '.join(unknown)}. Remove it from the model {spec.name}; "
            f"known: {', '.join(sorted(parameters)) or 'none'}."
        )
    if not remote and (spec.endpoint or spec.credential):
        raise InvalidInput(f"The provider {spec.provider} calls no server. Remove endpoint and credential from the model {spec.name}.")


def _check_vectors(vectors: np.ndarray, *, spec: ModelSpec, expected: int) -> np.ndarray:
    if vectors.ndim != 2 or len(vectors) != expected:
        raise PermanentProviderError(
            f"The model {spec.name} was given {expected} texts and answered with {len(vectors)} vectors. "
            "Nothing was stored; check that its endpoint is an embeddings endpoint that accepts several texts."
        )
    if vectors.shape[1] != spec.dimension:
        raise PermanentProviderError(
            f"The model {spec.name} gives vectors of {vectors.shape[1]} numbers and is registered with {spec.dimension}. "
            f"Register it with dimension {vectors.shape[1]}, or set the provider's `dimensions` parameter to {spec.dimension}."
        )
    vectors = vectors.astype(np.float32, copy=False)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise PermanentProviderError(
            f"The model {spec.name} gave a vector that is no direction (a value that is not finite, or only zeros). "
            "Nothing was stored; check the model and its precision."
        )
    return vectors / lengths
