"""Uploads outside of a form, from announcing them to the file that becomes of them."""

from collections.abc import Callable
from dataclasses import dataclass

from config.errors import ExtractionError, TooLarge
from ingestion.services import channel_files, files
from kb import access, uploads
from kb.access import Actor, Level
from kb.channels import get_channel
from kb.models import Blob, Channel, Document, File, Source, Upload


@dataclass(frozen=True, slots=True)
class Announced:
    """What is said of a file before its bytes come."""

    file_name: str
    size: int
    sha256: bytes | None = None
    media_type: str = ""


def announce_to_source(actor: Actor, source: Source, announced: Announced, *, is_resumable: bool) -> Upload:
    """An upload that becomes a file of an upload source, if there is room for it now. Raises as `uploads.begin`, and `Conflict`."""
    files.require_upload_source(source)
    try:
        files.check_file(source, announced.file_name, announced.size)
    except ExtractionError as error:
        raise TooLarge(error.message) if error.reason == "too_large" else error from None
    details = {"knowledge_base": str(source.knowledge_base_id), "source": str(source.id)}
    return _begin(actor, Upload.Target.SOURCE, details, announced, is_resumable=is_resumable)


def announce_to_channel(actor: Actor, channel: Channel, announced: Announced, *, said: channel_files.Upload, is_resumable: bool) -> Upload:
    """An upload that becomes a version of its title in a channel. What is said of it is checked now, not after the bytes have come.
    Raises as `uploads.begin`, and `InvalidInput`."""
    channel_files.check_upload(channel, said)
    details = {
        "channel": str(channel.id),
        "title": said.title,
        "visibility": str(said.visibility),
        "policy": dict(said.policy),
    }
    return _begin(actor, Upload.Target.CHANNEL, details, announced, is_resumable=is_resumable)


def complete(actor: Actor, upload: Upload, *, sha256: bytes | None = None) -> Document | File:
    """Take over what came: checked, read as any upload is, and kept; in a channel as the version that it is. The actor must still be
    allowed to. Raises what `uploads.taken_over` raises, and the reason of a refusal."""
    keep = KEEPERS[upload.target](actor, upload)
    with uploads.taken_over(upload, sha256=sha256) as blob:
        return keep(blob)


def _begin(actor: Actor, target: Upload.Target, details: dict, announced: Announced, *, is_resumable: bool) -> Upload:
    return uploads.begin(
        actor,
        target=target,
        details=details,
        file_name=announced.file_name,
        size=announced.size,
        sha256=announced.sha256,
        media_type=announced.media_type,
        is_resumable=is_resumable,
    )


def _keep_in_source(actor: Actor, upload: Upload) -> Callable[[Blob], Document]:
    knowledge_base = access.get_knowledge_base(actor, upload.details["knowledge_base"], Level.EDIT)
    source = access.get_source(actor, knowledge_base, upload.details["source"])
    files.require_upload_source(source)

    def keep(blob: Blob) -> Document:
        return files.keep_blob(source, blob, name=upload.file_name, declared_type=upload.media_type or None, user=actor.user)

    return keep


def _keep_in_channel(actor: Actor, upload: Upload) -> Callable[[Blob], File]:
    channel = get_channel(actor, upload.details["channel"], Level.EDIT)
    said = channel_files.Upload(
        title=upload.details["title"],
        file_name=upload.file_name,
        media_type=upload.media_type,
        visibility=upload.details["visibility"],
        policy=upload.details["policy"],
    )
    return lambda blob: channel_files.add_file(actor, channel, blob, upload=said)


KEEPERS: dict[str, Callable[[Actor, Upload], Callable[[Blob], Document | File]]] = {
    Upload.Target.SOURCE: _keep_in_source,
    Upload.Target.CHANNEL: _keep_in_channel,
}
