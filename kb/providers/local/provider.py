"""The `local` provider: a model in this process, by one of two backends."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from config.errors import InvalidInput
from kb.providers.base import BatchLimits, Embedded, ModelSpec, Role, check_settings

BACKENDS = ("openvino", "torch")
PRECISIONS = ("default", "f32", "bf16")
_PARAMETERS = frozenset({"backend", "precision", "device", "sha256", "tokenizer"})


class Encoder(Protocol):
    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, int]: ...


class LocalProvider:
    """Loads its model when constructed. One batch is what is committed at once; the backend sorts and splits it further by itself."""

    limits = BatchLimits(max_texts=128, max_tokens=32_768)
    longest_call = 0.0

    def __init__(self, spec: ModelSpec, *, threads: int | None = None) -> None:
        self.check(spec)
        self._encoder = _load_encoder(spec, threads=threads or _available_cores())

    @classmethod
    def check(cls, spec: ModelSpec) -> None:
        check_settings(spec, parameters=_PARAMETERS, remote=False)
        _check_choice(spec, "backend", BACKENDS)
        _check_choice(spec, "precision", PRECISIONS)
        ignored = {"openvino": "device", "torch": "precision"}[spec.parameters.get("backend", "openvino")]
        if ignored in spec.parameters:
            raise InvalidInput(f"The backend of the model {spec.name} ignores {ignored}. Remove it, or choose the other backend.")

    def embed_batch(self, texts: Sequence[str], role: Role) -> Embedded:
        vectors, tokens = self._encoder.encode(texts)
        return Embedded(vectors=vectors, tokens=tokens)


def _load_encoder(spec: ModelSpec, *, threads: int) -> Encoder:
    if spec.parameters.get("backend", "openvino") == "torch":
        from kb.providers.local.torch import TorchEncoder

        return TorchEncoder(spec, threads=threads)
    from kb.providers.local.openvino import OpenVinoEncoder

    return OpenVinoEncoder(spec, threads=threads)


def _check_choice(spec: ModelSpec, name: str, known: tuple[str, ...]) -> None:
    value = spec.parameters.get(name, known[0])
    if value not in known:
        raise InvalidInput(f"The parameter {name} of the model {spec.name} is {value!r}. Choose one of: {', '.join(known)}.")


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
