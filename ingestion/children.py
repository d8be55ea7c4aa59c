"""The child processes of this process: made when first needed, shared by all its threads."""

import atexit
from threading import Lock

from django.conf import settings

from ingestion.extract.sandbox import Sandbox
from ingestion.render import Renderer

_lock = Lock()
_pools: dict[str, Sandbox] = {}
_browsers: list[Renderer] = []


def sandbox(*, languages: bool = True) -> Sandbox:
    """The pool; children are kept warm between files and end with the process. A look at an upload needs none that know languages."""
    return _pool("files" if languages else "uploads", languages=languages)


def query_sandbox() -> Sandbox:
    """Children for queries of datasets: a slow query keeps no upload waiting."""
    return _pool("queries", languages=False)


def _pool(name: str, *, languages: bool) -> Sandbox:
    with _lock:
        if name not in _pools:
            limits_only = settings.ENV.sandbox == "limits"
            _pools[name] = Sandbox(size=settings.ENV.extract_children, languages=languages, limits_only=limits_only)
            atexit.register(_pools[name].close)
        return _pools[name]


def renderer() -> Renderer:
    """The browser for pages that scripts make; it starts with the first page and ends with the process."""
    with _lock:
        if not _browsers:
            _browsers.append(Renderer())
            atexit.register(_browsers[0].close)
        return _browsers[0]
