"""The child processes of this process: made when first needed, shared by all its threads."""

import atexit
from threading import Lock

from django.conf import settings

from ingestion.extract.sandbox import Sandbox
from ingestion.render import Renderer

_lock = Lock()
_pools: dict[bool, Sandbox] = {}
_browsers: list[Renderer] = []


def sandbox(*, languages: bool = True) -> Sandbox:
    """The pool; children are kept warm between files and end with the process. A look at an upload needs none that know languages."""
    with _lock:
        if languages not in _pools:
            _pools[languages] = Sandbox(
                size=settings.ENV.extract_children, languages=languages, limits_only=settings.ENV.sandbox == "limits"
            )
            atexit.register(_pools[languages].close)
        return _pools[languages]


def renderer() -> Renderer:
    """The browser for pages that scripts make; it starts with the first page and ends with the process."""
    with _lock:
        if not _browsers:
            _browsers.append(Renderer())
            atexit.register(_browsers[0].close)
        return _browsers[0]
