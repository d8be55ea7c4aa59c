"""The folder of stored files, told from the empty place where it was to be mounted: a marker lies in its root."""

from pathlib import Path

from django.core.files.storage import default_storage

from config.errors import Unavailable
from config.object_store import words
from kb.models import Blob

MARKER = ".lectern-files"
LOOKED_AT = 5
_DIRECTORY_MODE = 0o700


def is_mounted() -> bool:
    """Whether files that are missing are lost, and do not come back with their folder. A bucket is always there."""
    root = _root()
    return root is None or (root / MARKER).is_file() or (root.is_dir() and any(default_storage.exists(key) for key in _oldest()))


def require_mounted() -> None:
    """To be asked before anything is written, which would make the folder anew. Marks one that is new. Raises `Unavailable`."""
    root = _root()
    if root is None or (root / MARKER).is_file():
        return
    if not is_mounted() and _oldest():
        raise not_mounted()
    try:
        root.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        (root / MARKER).touch()
    except OSError as error:
        raise Unavailable(f"The folder of stored files cannot be written ({words(error)}). Nothing was kept; try again.") from error


def not_mounted() -> Unavailable:
    return Unavailable(
        f"The folder of stored files is not there. Mount it, and try again. If it is lost, make an empty file {MARKER} in a new one."
    )


def _root() -> Path | None:
    """None where files are in an object store, which has no paths."""
    try:
        return Path(default_storage.path(""))
    except NotImplementedError:
        return None


def _oldest() -> list[str]:
    return list(Blob.objects.order_by("created_at").values_list("storage_key", flat=True)[:LOOKED_AT])
