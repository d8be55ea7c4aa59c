"""A deterministic model without weights, for tests: words hashed into a vector. Texts that share words are near each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from kb.providers.base import BatchLimits, Embedded, ModelSpec, Role, check_settings

_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7ff]|[^\W\u2e80-\u9fff\uac00-\ud7ff]+")


class HashingProvider:
    limits = BatchLimits(max_texts=128, max_tokens=100_000)
    longest_call = 0.0

    def __init__(self, spec: ModelSpec, *, threads: int | None = None) -> None:
        self.check(spec)
        self._dimension = spec.dimension

    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        check_settings(spec, parameters=frozenset({"tokenizer"}), remote=False)

    def embed_batch(self, texts: Sequence[str], role: Role) -> Embedded:
        vectors = np.array([hash_vector(text, self._dimension) for text in texts], dtype=np.float32).reshape(len(texts), self._dimension)
        return Embedded(vectors=vectors, tokens=sum(len(_WORD.findall(text)) for text in texts))


def hash_vector(text: str, dimension: int) -> np.ndarray:
    """Length 1, also for a text without words (all of those are the same)."""
    vector = np.zeros(dimension, dtype=np.float32)
    for word in _WORD.findall(text.lower()) or [""]:
        number = int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        vector[number % dimension] += 1.0 if number >> 63 else -1.0
    length = float(np.linalg.norm(vector))
    if not length:  # two words that cancelled each other out
        vector[0] = length = 1.0
    return vector / length
