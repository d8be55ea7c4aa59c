"""The `cross-encoder` provider: a sentence-transformers CrossEncoder in this process, by path or by name."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from threading import Lock
from typing import Any

from config.errors import InvalidInput, LecternError, PermanentProviderError
from kb.rerankers.base import RerankerSpec, late

log = logging.getLogger(__name__)

# Pairs of one forward pass: between two of them a call that is over is noticed.
_BATCH = 8


class CrossEncoderReranker:
    """One thread a model: loading and scoring wait for each other there, and whoever asks waits no longer than its time. A model that
    still loads makes the first searches late, and none of them wait for it."""

    most_passages = 1000

    def __init__(self, spec: RerankerSpec) -> None:
        self.check(spec)
        self._spec = spec
        self._lock = Lock()
        self._pool: tuple[int, ThreadPoolExecutor] | None = None
        self._model: Any = None

    @classmethod
    def check(cls, spec: RerankerSpec) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise InvalidInput(
                f"The reranker {spec.name} needs sentence-transformers and torch, which are not installed here. Install them (make torch), "
                "or register a rerank service."
            )

    def score(self, query: str, passages: Sequence[str], *, seconds: float) -> list[float]:
        end = time.monotonic() + seconds
        future = self._submit(query, list(passages), end)
        try:
            return future.result(timeout=max(0.0, seconds))
        except FutureTimeout:
            future.cancel()
            raise late(self._spec) from None

    def _submit(self, query: str, passages: list[str], end: float) -> Future[list[float]]:
        with self._lock:
            # A fork has the object and not its thread.
            if self._pool is None or self._pool[0] != os.getpid():
                self._pool = (os.getpid(), ThreadPoolExecutor(max_workers=1, thread_name_prefix="cross-encoder"))
            return self._pool[1].submit(self._predict, query, passages, end)

    def _predict(self, query: str, passages: list[str], end: float) -> list[float]:
        if self._model is None:
            self._model = self._load()
        # The longest first, as the library does for itself: a batch costs what its longest pair does.
        order = sorted(range(len(passages)), key=lambda index: -len(passages[index]))
        found: dict[int, float] = {}
        for start in range(0, len(order), _BATCH):
            if time.monotonic() >= end:
                raise late(self._spec)
            batch = order[start : start + _BATCH]
            for index, value in zip(batch, self._forward(query, [passages[index] for index in batch]), strict=True):
                found[index] = value
        return [found[index] for index in range(len(passages))]

    def _forward(self, query: str, passages: list[str]) -> list[float]:
        try:
            # One label: the model's own activation is replaced by the one that gives a probability.
            values = self._model.predict([(query, passage) for passage in passages], batch_size=_BATCH, show_progress_bar=False)
        except Exception as error:
            # A runtime may raise anything; the search goes on without it.
            log.exception("The reranker %s failed.", self._spec.name)
            raise PermanentProviderError(f"The reranker {self._spec.name} failed; the log of the server says why.") from error
        return [float(value) if math.isfinite(value) else math.nan for value in values]

    def _load(self) -> Any:
        from sentence_transformers import CrossEncoder
        from torch.nn import Sigmoid

        spec = self._spec
        limits = {"max_length": spec.parameters["max_length"]} if "max_length" in spec.parameters else {}
        try:
            model = CrossEncoder(spec.model, device=spec.parameters.get("device"), activation_fn=Sigmoid(), **limits)
        except LecternError:
            raise
        except Exception as error:
            raise PermanentProviderError(
                f"The reranker {spec.name} could not be loaded from {spec.model!r}: {str(error)[:300]} Check the name, or copy the model "
                "to this machine."
            ) from error
        if model.config.num_labels != 1:
            raise PermanentProviderError(
                f"The reranker {spec.name} sorts into {model.config.num_labels} classes. Name a CrossEncoder with one score a pair."
            )
        return model
