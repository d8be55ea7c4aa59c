"""Rerankers. Importing this package loads no model library; a provider's own is imported when a reranker of it first scores."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from config.registry import Registry
from kb.rerankers.base import Late, RerankerProvider, RerankerSpec, rerank

__all__ = ["Late", "RerankerProvider", "RerankerSpec", "check_reranker", "load_reranker", "provider_names", "rerank"]

_KEPT = 4
_loaded: OrderedDict[RerankerSpec, RerankerProvider] = OrderedDict()
_lock = Lock()
_registry: Registry[Any] | None = None


def provider_names() -> list[str]:
    return _providers().names()


def load_reranker(spec: RerankerSpec) -> RerankerProvider:
    """The provider of a reranker, made once per process and settings, and kept."""
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = _providers().load(spec.provider)(spec)
            while len(_loaded) > _KEPT:
                _loaded.popitem(last=False)  # a search may still use it, so it is not closed
        _loaded.move_to_end(spec)
        return _loaded[spec]


def check_reranker(spec: RerankerSpec) -> None:
    """Refuse what cannot work here, without loading a model or calling a server."""
    _providers().load(spec.provider).check(spec)


def _providers() -> Registry[Any]:
    global _registry
    if _registry is None:
        from django.conf import settings

        _registry = Registry("provider of rerankers", settings.RERANKERS)
    return _registry
