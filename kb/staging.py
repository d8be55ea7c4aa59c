"""Pieces of uploads in the storage: objects below `uploads/`, until the whole is taken over."""

import hashlib
import logging
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO
from uuid import uuid4

from django.core.files.base import File
from django.core.files.storage import default_storage

from config.errors import Conflict, TooLarge, Unavailable
from config.object_store import faults, words
from kb.folder import require_mounted
from kb.models import Upload

log = logging.getLogger(__name__)

FOLDER = "uploads"
PART_BYTES = 1024 * 1024


def new_key(upload: Upload) -> str:
    return f"{FOLDER}/{upload.organization_id}/{upload.id}-{uuid4().hex}"


def save(key: str, content: IO[bytes]) -> str:
    """The key under which it is; raises `Unavailable`."""
    require_mounted()
    content.seek(0)
    try:
        return default_storage.save(key, File(content, name="piece"))
    except faults() as error:
        delete([key])  # on a full disk, what was written
        raise Unavailable(f"The bytes could not be stored ({words(error)}). Nothing was kept; try again.") from error


def read(key: str) -> Iterator[bytes]:
    """The bytes, part by part. Raises `Conflict` where nothing has come, `Unavailable`."""
    try:
        with default_storage.open(key) as stored:
            while part := stored.read(PART_BYTES):
                yield part
    except FileNotFoundError:
        raise Conflict("Nothing has come yet. Send the bytes, then complete the upload.", received=0) from None
    except faults() as error:
        raise Unavailable(f"The bytes that came could not be read ({words(error)}). Try again.") from error


@contextmanager
def spooled(stream: IO[bytes], *, most: int) -> Iterator[tuple[IO[bytes], int, bytes]]:
    """(the bytes in a file of ours, how many, their SHA-256). Raises `TooLarge` as soon as there are more than `most`."""
    with tempfile.SpooledTemporaryFile(max_size=PART_BYTES, prefix="lectern-") as whole:
        size, digest = 0, hashlib.sha256()
        while part := stream.read(PART_BYTES):
            size += len(part)
            if size > most:
                raise TooLarge(f"More bytes came than were announced: at most {most:,} are left. Nothing of this was kept.", max_bytes=most)
            digest.update(part)
            whole.write(part)
        yield whole, size, digest.digest()


def delete(keys: Iterable[str]) -> None:
    """One that cannot be deleted is logged and does not keep the others."""
    for key in keys:
        with suppress(FileNotFoundError):
            try:
                default_storage.delete(key)
            except faults() as error:
                log.warning("The piece %s of an upload could not be deleted and is left over: %s", key, error)
