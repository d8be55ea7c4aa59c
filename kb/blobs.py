"""Stored bytes: content-addressed per organization, over Django's storage (a folder by default, S3 by setting).

The file is written before the row names it, so a row never points at nothing; a crash between the two leaves a file
that no row names. Reuse locks and touches the row, the collector deletes rows under the same lock, and the file only
after the row is gone.
"""

import hashlib
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from io import BytesIO
from os import urandom
from pathlib import Path
from typing import IO, NamedTuple
from uuid import UUID, uuid4

from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from config.errors import StoredDamaged, Unavailable
from config.object_store import faults, words
from kb.folder import is_mounted, not_mounted, require_mounted
from kb.models import Blob

log = logging.getLogger(__name__)

COLLECT_AFTER = timedelta(hours=24)
PART_BYTES = 1024 * 1024
_REFERENCES = (
    ("kb_file", "blob_id"),
    ("kb_document", "markdown_id"),
    ("kb_datasetpart", "blob_id"),
    ("ingestion_runitem", "blob_id"),
    ("ingestion_runitem", "markdown_id"),
)


class _Content(NamedTuple):
    size: int
    file: File


def store_bytes(organization_id: UUID, content: bytes) -> Blob:
    """The blob that holds `content`, a new one if the organization has none."""
    return store_stream(organization_id, BytesIO(content))


def store_stream(organization_id: UUID, stream: IO[bytes]) -> Blob:
    """Like `store_bytes` for an open file, read twice and never held whole."""
    (blob,) = store_streams(organization_id, [stream])
    return blob


def store_streams(organization_id: UUID, streams: Sequence[IO[bytes]]) -> list[Blob]:
    """The same for many files, in their order. Raises `Unavailable`; new ones are kept all or none."""
    measured = [_measure(stream) for stream in streams]
    wanted = {digest: _Content(size, File(each, name="content")) for (digest, size), each in zip(measured, streams, strict=True)}
    found = _store(organization_id, wanted, is_checked=True)
    return [found[digest] for digest, _ in measured]


def store_texts(organization_id: UUID, texts: Sequence[str]) -> list[Blob]:
    """Blobs of many texts at once, in their order; known ones are reused. Raises `Unavailable`."""
    return store_contents(organization_id, [text.encode("utf-8") for text in texts])


def store_contents(organization_id: UUID, contents: Sequence[bytes]) -> list[Blob]:
    """The same for bytes."""
    digests = [hashlib.sha256(content).digest() for content in contents]
    wanted = {digest: _Content(len(content), ContentFile(content)) for digest, content in zip(digests, contents, strict=True)}
    found = _store(organization_id, wanted, is_checked=False)
    return [found[digest] for digest in digests]


def _measure(stream: IO[bytes]) -> tuple[bytes, int]:
    """(SHA-256, bytes)"""
    state, size = hashlib.sha256(), 0
    stream.seek(0)
    while part := stream.read(PART_BYTES):
        state.update(part)
        size += len(part)
    stream.seek(0)
    return state.digest(), size


def _store(organization_id: UUID, wanted: Mapping[bytes, _Content], *, is_checked: bool) -> dict[bytes, Blob]:
    """Blobs by hash. Where they are checked, what names one whose bytes were lost or damaged has them again."""
    if not wanted:
        return {}
    with transaction.atomic():
        known = _reuse(organization_id, wanted)
    for digest, blob in known.items() if is_checked else ():
        if not is_whole(blob):
            lost, blob.storage_key = blob.storage_key, _write(organization_id, digest, wanted[digest].file)
            blob.save(update_fields=["storage_key"])
            _delete_files([lost])
    new = {digest: content for digest, content in wanted.items() if digest not in known}
    return known | (_store_new(organization_id, new) if new else {})


def _store_new(organization_id: UUID, contents: Mapping[bytes, _Content]) -> dict[bytes, Blob]:
    """Files first, then their rows in one statement, in the order of hashes: two that store the same wait for each other, never both."""
    rows: list[Blob] = []
    try:
        for digest, content in sorted(contents.items()):
            key = _write(organization_id, digest, content.file)
            rows.append(Blob(organization_id=organization_id, sha256=digest, size=content.size, storage_key=key))
    except Unavailable:
        _delete_files(row.storage_key for row in rows)
        raise
    found = _insert(organization_id, rows)
    # Somebody stored the same content meanwhile.
    _delete_files(row.storage_key for row in rows if found[bytes(row.sha256)].id != row.id)
    return found


def _insert(organization_id: UUID, rows: Sequence[Blob]) -> dict[bytes, Blob]:
    """New rows, or those that are there already, touched."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO kb_blob (id, organization_id, sha256, size, storage_key, created_at, touched_at)"
            " SELECT id, %s, sha256, size, storage_key, now(), now()"
            " FROM unnest(%s::uuid[], %s::bytea[], %s::bigint[], %s::text[]) AS new (id, sha256, size, storage_key) ORDER BY sha256"
            " ON CONFLICT (organization_id, sha256) DO UPDATE SET touched_at = now() RETURNING id, sha256, size, storage_key",
            [organization_id, [b.id for b in rows], [b.sha256 for b in rows], [b.size for b in rows], [b.storage_key for b in rows]],
        )
        found = [Blob(id=i, organization_id=organization_id, sha256=bytes(s), size=n, storage_key=k) for i, s, n, k in cursor.fetchall()]
    return {blob.sha256: blob for blob in found}


def _reuse(organization_id: UUID, digests: Iterable[bytes]) -> dict[bytes, Blob]:
    """The blobs that are there, kept from the collector; inside a transaction."""
    rows = Blob.objects.select_for_update(no_key=True).filter(organization_id=organization_id, sha256__in=list(digests)).order_by("id")
    found = {bytes(blob.sha256): blob for blob in rows}
    Blob.objects.filter(id__in=[blob.id for blob in found.values()]).update(touched_at=timezone.now())
    return found


def _write(organization_id: UUID, sha256: bytes, content: File) -> str:
    """Store the content under a key of its own; returns the key."""
    require_mounted()
    wanted = f"{organization_id}/{sha256.hex()}/{uuid4().hex}"
    try:
        return default_storage.save(wanted, content)
    except faults() as error:
        with suppress(*faults()):  # on a full disk the part that was written is in the way of the next try
            default_storage.delete(wanted)
        raise Unavailable(f"The file could not be stored ({words(error)}). Nothing was kept; try again.") from error


def read_bytes(blob: Blob) -> bytes:
    """The content, checked against its hash. Raises `StoredDamaged` if that differs, `Unavailable` if it cannot be read now."""
    with _opened(blob) as stored:
        content = stored.read()
    _check(hashlib.sha256(content), blob)
    return content


def read_head(blob: Blob, size: int) -> bytes:
    """The first bytes, unchecked: to see what kind of file it is. Raises `StoredDamaged` where there are none, and `Unavailable`."""
    with _opened(blob) as stored:
        return stored.read(size)


def read_parts(blob: Blob) -> Iterator[bytes]:
    """The content part by part, checked on the way: the last part comes only if all of them are what was stored. Raises what
    `read_bytes` raises."""
    state, held = hashlib.sha256(), b""
    with _opened(blob) as stored:
        while part := stored.read(PART_BYTES):
            state.update(part)
            if held:
                yield held
            held = part
    _check(state, blob)
    yield held


def read_text(blob: Blob) -> str:
    return read_bytes(blob).decode("utf-8")


@contextmanager
def local_path(blob: Blob) -> Iterator[Path]:
    """The content as a file on this machine, for a child process to read, checked; gone when the block ends if it was a copy. Raises what
    `read_bytes` raises."""
    try:
        path = Path(default_storage.path(blob.storage_key))
    except NotImplementedError:  # the storage is remote
        with tempfile.TemporaryDirectory(prefix="lectern-") as folder:
            path = Path(folder) / "content"
            with path.open("wb") as copy:
                _check(_read_through(blob, copy.write), blob)
            yield path
        return
    _check(_read_through(blob), blob)
    yield path


def is_there(blob: Blob) -> bool:
    """Whether there are bytes of the right size; they are not read. Raises `Unavailable`."""
    try:
        return default_storage.size(blob.storage_key) == blob.size
    except FileNotFoundError:
        if not is_mounted():
            raise not_mounted() from None
        return False
    except faults() as error:
        if getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
            return False
        raise Unavailable(f"The storage could not be asked for a file ({words(error)}). Check it and try again.") from error


def is_whole(blob: Blob) -> bool:
    """Whether the stored bytes are what was stored. Raises `Unavailable`."""
    try:
        _check(_read_through(blob), blob)
    except StoredDamaged:
        return False
    return True


def _read_through(blob: Blob, take: Callable[[bytes], object] = bool) -> "hashlib._Hash":
    """The state of the hash after all parts were given to `take`, none of which is held longer."""
    state = hashlib.sha256()
    with _opened(blob) as stored:
        while part := stored.read(PART_BYTES):
            state.update(part)
            take(part)
    return state


def _check(state: "hashlib._Hash", blob: Blob) -> None:
    if state.digest() != bytes(blob.sha256):
        raise StoredDamaged("A stored file is damaged: its content does not match its hash.")


@contextmanager
def _opened(blob: Blob) -> Iterator[IO[bytes]]:
    try:
        with default_storage.open(blob.storage_key) as stored:
            yield stored
    except FileNotFoundError as error:
        if is_mounted():
            raise StoredDamaged("A stored file is missing from the storage.") from error
        raise not_mounted() from error
    except faults() as error:
        raise Unavailable(f"A stored file could not be read ({words(error)}). Check the storage and try again.") from error


def set_aside(identifiers: Iterable[UUID]) -> int:
    """Texts that are lost are not found by their hash any more, so that the same text is stored anew; how many."""
    return sum(Blob.objects.filter(id=identifier).update(sha256=urandom(32)) for identifier in identifiers)


def collect(limit: int = 500) -> int:
    """Remove blobs that nothing names and nobody touched for 24 hours; returns how many."""
    unused = " AND ".join(f"NOT EXISTS (SELECT 1 FROM {table} WHERE {column} = blob.id)" for table, column in _REFERENCES)  # noqa: S608
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, storage_key FROM kb_blob blob WHERE touched_at < %s AND {unused}"  # noqa: S608
            " ORDER BY touched_at LIMIT %s FOR UPDATE SKIP LOCKED",
            [timezone.now() - COLLECT_AFTER, limit],
        )
        rows = cursor.fetchall()
        cursor.execute("DELETE FROM kb_blob WHERE id = ANY(%s)", [[row[0] for row in rows]])
    _delete_files(key for _, key in rows)
    return len(rows)


def remove_all(organization_id: UUID, limit: int = 500) -> int:
    """Remove blobs of an organization that is going, whenever they were touched; how many. Call it until it returns 0."""
    with transaction.atomic():
        rows = Blob.objects.select_for_update().filter(organization_id=organization_id).order_by("id")[:limit]
        found = list(rows.values_list("id", "storage_key"))
        Blob.objects.filter(id__in=[identifier for identifier, _ in found]).delete()
    _delete_files(key for _, key in found)
    return len(found)


def _delete_files(keys: Iterable[str]) -> None:
    """One that cannot be deleted is logged and does not keep the others."""
    for key in keys:
        try:
            default_storage.delete(key)
        except faults() as error:
            log.warning("The stored file %s could not be deleted and is left over: %s", key, error)
