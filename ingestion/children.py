"""The child processes of this process: made when first needed, shared by all its threads."""

import atexit
from pathlib import Path
from threading import Lock

from django.conf import settings

from ingestion.extract.sandbox import Sandbox
from ingestion.recognition import local_speech
from ingestion.recognize.engines import print_engine
from ingestion.render import Renderer

# Engines keep their models: a child that has grown to this share of its memory is made anew before it is killed for it.
RETIRED_SHARE = 0.8

_lock = Lock()
_pools: dict[str, Sandbox] = {}
_recognizers: list[Sandbox] = []
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


def recognizer() -> Sandbox:
    """The one child that recognizes print and speech: with more memory than the others, one part at a time."""
    with _lock:
        if not _recognizers:
            engine, most = print_engine(), settings.ENV.recognize_memory_mb
            folders = [*(engine.folders if engine else []), *([Path(model)] if (model := local_speech()) else [])]
            limits_only = settings.ENV.sandbox == "limits"
            made = Sandbox(size=1, languages=False, readable=folders, retired_above_mb=RETIRED_SHARE * most, limits_only=limits_only)
            _recognizers.append(made)
            atexit.register(_recognizers[0].close)
        return _recognizers[0]


def renderer() -> Renderer:
    """The browser for pages that scripts make; it starts with the first page and ends with the process."""
    with _lock:
        if not _browsers:
            _browsers.append(Renderer())
            atexit.register(_browsers[0].close)
        return _browsers[0]
