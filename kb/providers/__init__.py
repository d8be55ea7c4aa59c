"""Embedding models. Importing this package loads no model library; a provider's own is imported when a model of it is first used."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from config.registry import Registry
from kb.providers.base import (
    BatchLimits,
    Embedded,
    EmbeddingProvider,
    ModelSpec,
    Role,
    document_text,
    embed,
    embed_once,
    embed_query,
)
from kb.providers.tokens import token_counter

__all__ = [
    "BatchLimits",
    "Embedded",
    "EmbeddingProvider",
    "ModelSpec",
    "Role",
    "check_spec",
    "document_text",
    "embed",
    "embed_once",
    "embed_query",
    "load_provider",
    "provider_names",
    "query_encoder",
    "token_counter",
]

_KEPT = 8
_loaded: OrderedDict[tuple[ModelSpec, int | None], EmbeddingProvider] = OrderedDict()
_lock = Lock()
_registry: Registry[Any] | None = None


def provider_names() -> list[str]:
    return _providers().names()


def load_provider(spec: ModelSpec, threads: int | None = None) -> EmbeddingProvider:
    """The provider of a model, loaded once per process and kept; `threads` limits a model that computes here (None: all cores)."""
    key = (spec, threads)
    with _lock:
        if key not in _loaded:
            _loaded[key] = _providers().load(spec.provider)(spec, threads=threads)
            while len(_loaded) > _KEPT:
                _loaded.popitem(last=False)  # a caller may still use it, so it is not closed
        _loaded.move_to_end(key)
        return _loaded[key]


def query_encoder(spec: ModelSpec) -> EmbeddingProvider:
    """For processes that only embed questions: one thread, so that a busy machine does not make a question wait for all its cores."""
    return load_provider(spec, threads=1)


def check_spec(spec: ModelSpec) -> None:
    """Refuse settings that the provider would not understand, without loading the model or calling a server."""
    _providers().load(spec.provider).check(spec)


def _providers() -> Registry[Any]:
    global _registry
    if _registry is None:
        from django.conf import settings

        _registry = Registry("embedding provider", settings.EMBEDDING_PROVIDERS)
    return _registry
