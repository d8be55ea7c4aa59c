"""Files of channels: every upload of a title is a new version of one document, taken in by a push of its own.

    upload ─ bytes stored ─▶ one transaction: version, claim of the document (epoch), run, item ─▶ the stages ─▶ it answers

The version that answered goes on until the new one is searchable. Whoever holds the document's row decides: of two uploads of a title
the later one wins, and the other's work is dropped by its epoch.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from config.errors import Conflict, InvalidInput, NotFound
from ingestion import claims, wakes
from ingestion.attachments import remove_attachments
from ingestion.models import IngestionRun, RunItem
from ingestion.parts import undescribed_documents
from ingestion.services.file_status import Status, status_of
from kb import blobs, vector_stores
from kb.access import Actor
from kb.channels import explain_policy
from kb.models import Blob, Channel, Document, File, KnowledgeBase, Source, key_hash
from kb.schemas.base import clean_line, fold
from kb.schemas.families import HEAD_BYTES, family_of
from kb.schemas.merging import Merged

MAX_TITLE = 300
MAX_NAME = 255
UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class Upload:
    """What came with the bytes. `title` is the identity; without one the file stands alone and is never replaced."""

    title: str = ""
    file_name: str = ""
    media_type: str = ""
    visibility: str = Document.Visibility.PRIVATE
    policy: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Removed:
    """`document`: whether the whole document went, or only one version of it; `restored` is the earlier version that is read again."""

    chunks: int
    document: bool
    restored: UUID | None = None


def add_file(actor: Actor, channel: Channel, blob: Blob, *, upload: Upload) -> File:
    """Take stored bytes in as the newest version of their title. Raises `InvalidInput` (title, policy) and `NotFound` (the channel has
    gone meanwhile); the blob is then left to the collector."""
    title, name = _named(upload)
    family = family_of(media_type=upload.media_type, name=name, head=blobs.read_head(blob, HEAD_BYTES))
    merged = explain_policy(channel, family=family, upload=upload.policy)
    with transaction.atomic():
        run = _open_run(channel.source, user=actor.user)
        document = _document(channel, actor, title=title or name, named=bool(title), visibility=upload.visibility)
        last = File.objects.filter(resource=document).order_by("-version").values_list("version", flat=True).first()
        file = File.objects.create(
            organization_id=channel.organization_id,
            blob=blob,
            name=name,
            media_type=upload.media_type,
            size=blob.size,
            sha256=bytes(blob.sha256),
            created_by=actor.user,
            resource=document,
            version=(last or 0) + 1,
            policy=dict(upload.policy),
            family=family,
        )
        document.file, document.title = file, (title or name)[:300]
        if document.answering_id is None:  # what answers keeps its type
            document.media_type = upload.media_type
        _push(run, document, merged)
    return file


def check_upload(channel: Channel, upload: Upload) -> None:
    """What is said of a file, before its bytes come. `InvalidInput` names what is wrong."""
    _, name = _named(upload)
    explain_policy(channel, family=family_of(media_type=upload.media_type, name=name), upload=upload.policy)


def retry_file(actor: Actor, channel: Channel, file: File) -> File:
    """Try a failed file again, under the policy as it is now. `Conflict` for one that has not failed or is not the newest version."""
    merged = explain_policy(channel, family=file.family, upload=file.policy)
    with transaction.atomic():
        run = _open_run(channel.source, user=actor.user)
        document = Document.objects.select_for_update(no_key=True).filter(id=file.resource_id).first()
        if document is None:
            raise NotFound()
        status = status_of(file)
        if status != Status.FAILED:
            raise Conflict(f"This file is {status}. Only a failed one can be tried again; upload it anew to replace it.")
        document.file_id = file.id
        _push(run, document, merged)
    return file


def describe_datasets(limit: int = 20) -> int:
    """Read a file again of each dataset whose describing file has gone, so that search finds it as before; returns how many."""
    described = 0
    # Where a newer version is on its way, that describes it.
    rows = Document.objects.filter(id__in=undescribed_documents(limit), file=F("answering"), source__channel__isnull=False)
    for document in rows.select_related("source__channel__source"):
        with suppress(NotFound):  # it went meanwhile
            _read_again(document.source.channel, document.id)
            described += 1
    return described


def _read_again(channel: Channel, document_id: UUID) -> None:
    with transaction.atomic():
        run = _open_run(channel.source, user=None)
        document = Document.objects.select_for_update(no_key=True, of=("self",)).select_related("file").filter(id=document_id).first()
        if document is None or document.file is None:
            raise NotFound()
        _push(run, document, explain_policy(channel, family=document.file.family, upload=document.file.policy))


def find_files(
    rows: QuerySet[File], *, channel: Channel | None = None, status: str = "", text: str = "", every_version: bool = False
) -> QuerySet[File]:
    """Rows with status, narrowed. Versions that were replaced are left out unless they are asked for."""
    if channel is not None:
        rows = rows.filter(resource__source=channel.source)
    if status:
        rows = rows.filter(status=status)
    elif not every_version:
        rows = rows.filter(resource__file=F("id"))
    return rows.filter(Q(resource__key__icontains=text) | Q(name__icontains=text)) if text else rows


def delete_file(file: File, *, actor: Actor | None = None) -> Removed:
    """Take a file out. The newest version takes its document along with every version, and what it answers is gone at once; where an
    earlier one still answers, only the newest goes, and that one is current again. Where the newest has failed and nothing answers, only
    it goes, and the one before it is read again. A version that was replaced goes alone. StoreError, and everything stays,
    while the store of its vectors does not answer."""
    if (earlier := _earlier_than_failed(file)) is not None:
        return _restore(file, earlier, user=actor.user if actor else None)
    vector_stores.require_answer(file.resource_id)
    with transaction.atomic():
        document = Document.objects.select_for_update(no_key=True).filter(id=file.resource_id).first()
        if document is None or not File.objects.filter(id=file.id, resource=document).exists():
            raise NotFound()
        if document.file_id != file.id:
            if document.answering_id == file.id:
                raise Conflict("This version answers until a newer one is ready. Delete that one first, or wait for it.")
            File.objects.filter(id=file.id).delete()
            return Removed(0, document=False)
        if document.answering_id not in (None, file.id):
            _withdraw(document, file)
            return Removed(0, document=False)
        remove_attachments([document.id])
        versions = list(File.objects.filter(resource=document).values_list("id", flat=True))
        chunks, _ = document.chunks.all().delete()
        remove_attachments([document.id])
        document.delete()
        File.objects.filter(id__in=versions).delete()
    return Removed(chunks, document=True)


def _earlier_than_failed(file: File) -> File | None:
    """The version that a failed newest one has taken out of the answers."""
    if not Document.objects.filter(id=file.resource_id, file=file.id, answering=None).exists() or status_of(file) != Status.FAILED:
        return None
    return File.objects.filter(resource=file.resource_id, version__lt=file.version).order_by("-version").first()


def _restore(file: File, earlier: File, *, user: Any) -> Removed:
    channel = Channel.objects.select_related("knowledge_base__current", "source").get(source__documents=file.resource_id)
    with transaction.atomic():
        run = _open_run(channel.source, user=user)
        document = Document.objects.select_for_update(no_key=True).filter(id=file.resource_id).first()
        if document is None or document.file_id != file.id or document.answering_id or not File.objects.filter(id=earlier.id).exists():
            raise Conflict("This file was changed at the same time. Look at it again, then delete what is still to go.")
        document.file, document.media_type = earlier, earlier.media_type
        try:
            merged = explain_policy(channel, family=earlier.family, upload=earlier.policy)
        except InvalidInput:  # what its upload said does not fit the channel any more: the channel decides
            merged = explain_policy(channel, family=earlier.family)
        _push(run, document, merged)
        File.objects.filter(id=file.id).delete()
    return Removed(0, document=False, restored=earlier.id)


def _withdraw(document: Document, file: File) -> None:
    """The version before it is what the document is again; work that is under way for this one finds another epoch."""
    document.file_id = document.answering_id
    document.last_error = document.last_reason = ""
    document.epoch += 1
    document.save(update_fields=["file", "last_error", "last_reason", "epoch"])
    File.objects.filter(id=file.id).delete()


def _open_run(source: Source, *, user: Any) -> IngestionRun:
    """A push of one file. First of all, in the order of locks: the source is held until the transaction ends."""
    knowledge_base = KnowledgeBase.objects.select_related("current").get(id=source.knowledge_base_id)
    if knowledge_base.state != KnowledgeBase.State.ACTIVE:
        raise NotFound()
    return claims.claim(
        source,
        kind=IngestionRun.Kind.PUSH,
        trigger=IngestionRun.Trigger.API,
        version=knowledge_base.current,
        space=knowledge_base.space,
        user=user,
        listed_at=timezone.now(),
    )


def _document(channel: Channel, actor: Actor, *, title: str, named: bool, visibility: str) -> Document:
    """The document of a title, locked. Private titles are each owner's own: a namesake of somebody else is another document."""
    private = visibility == Document.Visibility.PRIVATE
    owner = actor.user if private else None
    owner_key = actor.api_key if private and actor.user is None else None
    whose = f"user {owner.pk}" if owner else f"key {owner_key.pk}" if owner_key else "organization"
    identity = f"{whose}\n{fold(title)}" if named else f"{whose}\n\n{uuid4().hex}"
    document, _ = Document.objects.select_for_update(no_key=True).get_or_create(
        source=channel.source,
        key_hash=key_hash(identity),
        defaults={
            "organization_id": channel.organization_id,
            "knowledge_base_id": channel.knowledge_base_id,
            "key": title,
            "title": title[:300],
            "visibility": visibility,
            "owner": owner,
            "owner_key": owner_key,
        },
    )
    return document


def _push(run: IngestionRun, document: Document, merged: Merged) -> None:
    """Claim the document for its newest file, and make the item that is worked. What failed before is forgotten."""
    file = document.file
    document.epoch += 1
    document.last_error = document.last_reason = ""
    document.quarantined_hash, document.refused_under = None, ""
    document.last_run_id = run.id
    forgotten = ("last_error", "last_reason", "quarantined_hash", "refused_under")
    document.save(update_fields=["file", "media_type", "title", "epoch", "last_run_id", *forgotten])
    RunItem.objects.create(
        organization_id=run.organization_id,
        run=run,
        document=document,
        key=file.name,
        key_hash=bytes(document.key_hash),
        title=document.title,
        epoch=document.epoch,
        blob_id=file.blob_id,
        content_hash=bytes(file.sha256),
        size=file.size,
        policy={"family": merged.family, "values": merged.values},
        stage=RunItem.Stage.FETCHED,
        changed_at=timezone.now(),
    )
    transaction.on_commit(partial(wakes.wake, run.id, "extract", interactive=True))


def _named(upload: Upload) -> tuple[str, str]:
    """(title or "", file name)"""
    title = _line(upload.title, "title", MAX_TITLE)
    return title, _line(_last_part(upload.file_name), "file name", MAX_NAME) or _last_part(title)[:MAX_NAME] or UNNAMED


def _last_part(name: str) -> str:
    """Of a path as any system writes it; "" where that names nothing."""
    part = name.replace("\\", "/").rsplit("/", 1)[-1].strip()
    return "" if part in (".", "..") else part


def _line(text: str, what: str, longest: int) -> str:
    """One line that can be stored and shown. It names nothing in a file system, so separators in a title are only characters."""
    try:
        line = clean_line(text)
    except ValueError as error:
        raise InvalidInput(f"The {what} {error}", errors=[{"path": what, "message": str(error)}]) from None
    if len(line) > longest:
        message = f"has {len(line):,} characters, the limit is {longest}. Shorten it."
        raise InvalidInput(f"The {what} {message}", errors=[{"path": what, "message": message}])
    return line
