"""The extraction children of this process: made when first needed, one pool for all its threads."""

import atexit
from threading import Lock

from django.conf import settings

from ingestion.extract.sandbox import Sandbox

_lock = Lock()
_pool: list[Sandbox] = []


def sandbox() -> Sandbox:
    """The pool; children are kept warm between files and end with the process."""
    with _lock:
        if not _pool:
            _pool.append(Sandbox(size=settings.ENV.extract_children))
            atexit.register(_pool[0].close)
        return _pool[0]
