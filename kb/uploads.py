"""Files that come in outside of a form: by a signed address in one piece, or resumably in several (tus).

Every piece is an object of its own in the storage, below `uploads/`, so that a folder and a bucket serve alike, and no process has to
remember anything. What came is put together once, when the upload is taken over: its size and hash are checked then, whoever received it.
What nobody takes over is collected.
"""

import hashlib
import hmac
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO, Any
from uuid import UUID

from django.conf import settings
from django.core.signing import Signer
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from config.errors import ChecksumMismatch, Conflict, Forbidden, Gone, InvalidInput, LecternError, NotFound, TooLarge, TooManyRequests
from config.object_store import is_object_store, presigned_put
from config.tenancy import everyone, serve
from kb import blobs, staging
from kb.access import Actor
from kb.models import Blob, Upload

SIGNED_FOR = timedelta(minutes=15)
RESUMABLE_FOR = timedelta(hours=24)  # since the last piece
# A PUT that began in time may end after it; what it leaves is removed too.
COLLECT_AFTER = timedelta(hours=1)
BUSY_FOR = timedelta(minutes=5)
MOST_OPEN = 200  # of one organization
MOST_PARTS = 10_000
MOST_DIGITS = 15  # of the seconds at which an address expires
_SIGNER_SALT = "lectern.uploads"


@dataclass(frozen=True, slots=True)
class SignedUrl:
    """What a browser needs to send the bytes: nothing else authorizes it."""

    url: str
    headers: Mapping[str, str]
    expires_at: datetime
    method: str = "PUT"


def begin(
    actor: Actor,
    *,
    target: Upload.Target,
    details: Mapping[str, Any],
    file_name: str,
    size: int,
    sha256: bytes | None,
    media_type: str = "",
    is_resumable: bool = False,
) -> Upload:
    """Announce a file. Raises `InvalidInput`, `TooLarge` above the limit of its kind, `TooManyRequests` where too many wait already."""
    _check_name(file_name)
    most = settings.ENV.max_upload_bytes if is_resumable else settings.ENV.max_signed_upload_bytes
    if size < 1:
        raise InvalidInput("The file is empty. Send one with at least one byte.")
    if size > most:
        hint = "Split it, or raise LECTERN_MAX_UPLOAD_BYTES." if is_resumable else "Send it as a resumable upload."
        raise TooLarge(f"{file_name} has {size:,} bytes; the limit is {most:,}. {hint}", max_bytes=most)
    now = timezone.now()
    if Upload.objects.filter(organization=actor.organization, finished_at=None, expires_at__gt=now).count() >= MOST_OPEN:
        raise TooManyRequests(f"{MOST_OPEN} uploads of your organization wait to be completed. Complete or delete some.", retry_after=60)
    return Upload.objects.create(
        organization=actor.organization,
        created_by=actor.user,
        api_key=actor.api_key,
        target=target,
        details=dict(details),
        file_name=file_name,
        media_type=media_type,
        size=size,
        sha256=sha256,
        is_resumable=is_resumable,
        expires_at=now + (RESUMABLE_FOR if is_resumable else SIGNED_FOR),
    )


def signed_url(upload: Upload, *, route: str) -> SignedUrl:
    """Where its bytes go: to the bucket, or to `route` of ours, an absolute address, with a signature."""
    if is_object_store():
        key = staging.new_key(upload)
        Upload.objects.filter(id=upload.id).update(parts=[key])
        media_type = upload.media_type or "application/octet-stream"
        endpoint = settings.ENV.s3_public_endpoint
        url, headers = presigned_put(key, size=upload.size, media_type=media_type, expires_in=SIGNED_FOR, endpoint=endpoint)
        return SignedUrl(url, headers, upload.expires_at)
    expires = int(upload.expires_at.timestamp())
    headers = {"Content-Type": upload.media_type or "application/octet-stream"}
    return SignedUrl(f"{route}?expires={expires}&signature={_signature(upload.id, expires)}", headers, upload.expires_at)


def check_signature(upload_id: str, *, expires: str, signature: str) -> Upload:
    """The upload that an address of ours was signed for; its organization is served from here on. Raises `Forbidden`, the same for a
    wrong, a changed and an expired address."""
    # As bytes: the comparison takes no text of other letters.
    given = signature.encode("utf-8", "replace")
    is_time = expires.isascii() and expires.isdigit() and len(expires) <= MOST_DIGITS
    valid = is_time and hmac.compare_digest(_signature(upload_id, int(expires)).encode(), given)
    with everyone():
        upload = (
            Upload.objects.filter(id=upload_id, is_resumable=False).first() if valid and int(expires) > timezone.now().timestamp() else None
        )
    if upload is None:
        raise Forbidden("This address is not valid, or not any more. Ask for a new one with upload-url.")
    serve(upload.organization_id)
    return upload


def receive(upload: Upload, stream: IO[bytes]) -> None:
    """The bytes of a signed upload, once. Raises `Conflict` for a second time, `TooLarge`, `InvalidInput`, `ChecksumMismatch`."""
    with staging.spooled(stream, most=upload.size) as (spooled, size, digest):
        if size < upload.size:
            raise InvalidInput(f"{size:,} bytes came, {upload.size:,} were announced. Send all of them.")
        if upload.sha256 is not None and digest != bytes(upload.sha256):
            raise ChecksumMismatch("The bytes that came have another SHA-256 than was announced. Send the file again.")
        append(upload, 0, spooled)


def receive_part(upload: Upload, offset: int, stream: IO[bytes]) -> int:
    """A piece of a resumable upload, from `offset` on; the new offset. Raises `Conflict` for another offset, `TooLarge`, `Gone`."""
    if offset != upload.received:
        raise _wrong_offset(upload.received)
    with staging.spooled(stream, most=upload.size - upload.received) as (spooled, size, _):
        return append(upload, offset, spooled) if size else upload.received


def append(upload: Upload, offset: int, spooled: IO[bytes]) -> int:
    """Store a piece, then say so; of two that bring the same piece one is refused and leaves nothing.

    Raises `NotFound`, `Conflict`, `Gone`."""
    size = spooled.seek(0, 2)
    key = staging.save(staging.new_key(upload), spooled)
    try:
        with transaction.atomic():
            now = _locked(upload)
            require_open(now)
            if now.received != offset:
                raise Conflict("The bytes are there already.") if not now.is_resumable else _wrong_offset(now.received)
            if len(now.parts) >= MOST_PARTS:
                raise TooLarge(f"An upload has at most {MOST_PARTS:,} pieces. Begin again with larger ones.")
            now.parts, now.received = [*now.parts, key], now.received + size
            if now.is_resumable:
                now.expires_at = timezone.now() + RESUMABLE_FOR
            now.save(update_fields=["parts", "received", "expires_at"])
    except LecternError:
        staging.delete([key])
        raise
    upload.received, upload.parts, upload.expires_at = now.received, now.parts, now.expires_at
    return now.received


def require_open(upload: Upload) -> None:
    """Raises `Conflict` for one that is over or being taken over, `Gone` for one that ran out."""
    now = timezone.now()
    if upload.finished_at:
        raise Conflict("This upload is over: it was completed or refused, and serves once. Ask for another.")
    if upload.busy_until and upload.busy_until > now:
        raise Conflict("The upload is being completed. Wait for the answer.")
    if upload.expires_at <= now:
        raise Gone("This upload has expired. Ask for another.")


@contextmanager
def taken_over(upload: Upload, *, sha256: bytes | None = None) -> Iterator[Blob]:
    """The blob of what came, checked, for one caller once. If the block ends, or refuses the file for good, the upload is over; if it was
    stopped by something that passes, it can be tried again. Raises `Conflict`, `Gone`, `ChecksumMismatch`, `Unavailable`."""
    _claim(upload)
    try:
        yield _put_together(upload, sha256 or (bytes(upload.sha256) if upload.sha256 else None))
    except BaseException as error:
        over = isinstance(error, LecternError) and not error.transient and not isinstance(error, (Conflict, InvalidInput))
        _finish(upload) if over else Upload.objects.filter(id=upload.id).update(busy_until=None)
        raise
    _finish(upload)


def cancel(upload: Upload) -> None:
    """Forget it, and what came of it. Raises `Conflict` while it is taken over."""
    with transaction.atomic():
        now = Upload.objects.select_for_update().filter(id=upload.id).first()
        if now is None:
            return
        if now.busy_until and now.busy_until > timezone.now():
            raise Conflict("The upload is being completed. Wait for the answer.")
        now.delete()
    staging.delete(now.parts)


def collect(limit: int = 500) -> int:
    """Remove uploads that ran out, with their pieces; returns how many."""
    late = timezone.now() - COLLECT_AFTER
    idle = Q(busy_until=None) | Q(busy_until__lt=timezone.now())
    with transaction.atomic():
        rows = list(Upload.objects.select_for_update(skip_locked=True).filter(idle, expires_at__lt=late).order_by("expires_at")[:limit])
        Upload.objects.filter(id__in=[row.id for row in rows]).delete()
    staging.delete(key for row in rows for key in row.parts)
    return len(rows)


def remove_all(organization_id: UUID, limit: int = 500) -> int:
    """Remove uploads of an organization that is going; how many. Call it until it returns 0."""
    with transaction.atomic():
        rows = list(Upload.objects.select_for_update().filter(organization_id=organization_id).order_by("id")[:limit])
        Upload.objects.filter(id__in=[row.id for row in rows]).delete()
    staging.delete(key for row in rows for key in row.parts)
    return len(rows)


def _locked(upload: Upload) -> Upload:
    """Its row, ours until the transaction ends. Raises `NotFound` where somebody gave the upload up meanwhile."""
    now = Upload.objects.select_for_update(no_key=True).filter(id=upload.id).first()
    if now is None:
        raise NotFound("The upload was deleted meanwhile. Begin another.")
    return now


def _claim(upload: Upload) -> None:
    with transaction.atomic():
        now = _locked(upload)
        require_open(now)
        if not now.parts or (now.received < now.size and (now.is_resumable or not is_object_store())):
            raise Conflict(f"{now.received:,} of {now.size:,} bytes have come. Send the rest, then complete it.", received=now.received)
        now.busy_until = timezone.now() + BUSY_FOR
        now.save(update_fields=["busy_until"])
    upload.parts = now.parts


def _put_together(upload: Upload, wanted: bytes | None) -> Blob:
    if wanted is None:
        raise InvalidInput("Say the file's `sha256`, in hex: nothing is taken over unchecked.")
    with tempfile.TemporaryFile(prefix="lectern-") as whole:
        digest = hashlib.sha256()
        for key in upload.parts:
            for part in staging.read(key):
                if whole.tell() + len(part) > upload.size:
                    raise TooLarge(f"More than the announced {upload.size:,} bytes came. Ask for an upload of the right size.")
                digest.update(part)
                whole.write(part)
        if whole.tell() != upload.size:
            raise Conflict(f"{whole.tell():,} of {upload.size:,} bytes have come. Send the rest, then complete it.", received=whole.tell())
        if digest.digest() != wanted:
            raise ChecksumMismatch("The bytes that came have another SHA-256 than was announced. Upload the file again.")
        return blobs.store_stream(upload.organization_id, whole)


def _finish(upload: Upload) -> None:
    """The row stays until it would have expired: it says that it was used."""
    parts, upload.parts = upload.parts, []
    # What a signed address of the bucket brings late is removed with the row.
    kept = [] if upload.is_resumable or not is_object_store() else parts
    Upload.objects.filter(id=upload.id).update(finished_at=timezone.now(), busy_until=None, parts=kept)
    staging.delete(parts)


def _signature(upload_id: UUID | str, expires: int) -> str:
    return Signer(salt=_SIGNER_SALT).signature(f"{upload_id}:{expires}")


def _wrong_offset(received: int) -> Conflict:
    return Conflict(f"The upload goes on at byte {received:,}. Ask for its offset, and send from there.", received=received)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > 255 or ".." in name or "/" in name or "\\" in name or not name.isprintable():
        raise InvalidInput("`file_name` must be a plain name of 1 to 255 characters, without a path.")
