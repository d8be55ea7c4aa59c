"""From a store's name and parameters to a store that can be asked."""

import json
from collections import OrderedDict
from threading import Lock

from django.conf import settings

from config.registry import Registry
from kb.stores.base import StoreKind, StoreSpec, VectorStore

_KEPT = 64
_opened: OrderedDict[tuple[str, str], VectorStore] = OrderedDict()
_lock = Lock()


def store_kinds() -> Registry[StoreKind]:
    return Registry("vector store", settings.VECTOR_STORES)


def open_store(spec: StoreSpec) -> VectorStore:
    """The store, kept for the process with its connections. A rotated secret is another spec, so it takes effect at once."""
    key = (spec.type, json.dumps(dict(spec.parameters), sort_keys=True, default=str))
    with _lock:
        if key not in _opened:
            _opened[key] = store_kinds().load(spec.type).open(spec)
            while len(_opened) > _KEPT:
                _opened.popitem(last=False)  # a caller may still use it, so it is not closed
        _opened.move_to_end(key)
        return _opened[key]


def missing_stores() -> dict[str, str]:
    """Registered stores that this installation cannot use, each with the sentence that says why."""
    kinds = store_kinds()
    return {name: why for name in kinds if (why := kinds.load(name).missing())}


def usable_stores() -> frozenset[str]:
    return frozenset(store_kinds().names()) - missing_stores().keys()
