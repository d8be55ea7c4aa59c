"""What lies in the storage, whether or not a row names it."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from django.core.files.storage import default_storage

from config.errors import Unavailable
from config.object_store import faults, is_object_store, words
from kb import staging
from kb.folder import MARKER

PAGE = 1000


def keys_older_than(moment: datetime) -> Iterator[list[str]]:
    """Keys of files that were written before, in lists of up to a thousand. Raises `Unavailable`."""
    try:
        found = _objects(moment) if is_object_store() else _files("", moment)
        while page := list(islice(found, PAGE)):
            yield page
    except faults() as error:
        raise Unavailable(f"The storage could not be listed ({words(error)}). Check it and try again.") from error


def delete(keys: Iterable[str]) -> None:
    staging.delete(keys)


def _objects(moment: datetime) -> Iterator[str]:
    """Listed by pages of the store; a look at every object of its own would cost a request each."""
    for found in default_storage.bucket.objects.all():
        if found.last_modified < moment:
            yield found.key


def _files(folder: str, moment: datetime) -> Iterator[str]:
    if folder and not default_storage.exists(folder):
        return
    folders, files = default_storage.listdir(folder)
    prefix = f"{folder}/" if folder else ""
    for name in files:
        if prefix + name != MARKER and default_storage.get_modified_time(prefix + name) < moment:
            yield prefix + name
    for name in folders:
        yield from _files(prefix + name, moment)
