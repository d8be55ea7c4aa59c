"""Attachments of messages: each is a document of its own, whose life follows the message's.

An attachment is known by its message, its name and its bytes: what changes is another one. It has a file, so that its source lists it like
any other; it comes with the item of its message, and goes when the message is published without it, is refused, or is deleted.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.sources.base import Listed
from ingestion.sources.channel import policy_of
from ingestion.stages.listing import item_for
from kb import blobs
from kb.models import Blob, Channel, Document, File, key_hash
from kb.schemas.families import HEAD_BYTES, family_of

KIND = "attachment"
# A message in a message in a message: what lies deeper is refused by name.
MAX_NESTING = 3
TOO_DEEP = {"reason": "nested_too_deep", "error": "It lies too deep: a message in a message in a message. Upload it by itself."}


def add_attachments(run: IngestionRun, item: RunItem, files: Sequence[Mapping[str, Any]], plan: Plan) -> int:
    """Make documents and items of what came out of a message; how many wait to be read. Inside `claims.writing`, with the item's lease
    held. Those that were refused get their verdict at once."""
    found = [file for file in files if file["kind"] == KIND]
    if not found or item.document is None:
        return 0
    refused = TOO_DEEP if _nesting(item.document) >= MAX_NESTING else None
    items = [_item(run, item, file, plan, refused=refused or (file["details"] if "blob" not in file else None)) for file in found]
    RunItem.objects.bulk_create(items, ignore_conflicts=True)
    return sum(not each.verdict for each in items)


def settle_attachments(published: Sequence[tuple[Document, RunItem]]) -> None:
    """What is published of a message is its newest version: attachments that are not in it go. Inside the publishing transaction."""
    parents = [document.id for document, _ in published]
    kept = {_identity(document, file) for document, item in published for file in (item.extracted or {}).get("files", ()) if "blob" in file}
    rows = Document.objects.filter(part_of__in=parents).values_list("id", "key_hash")
    _remove([identifier for identifier, digest in rows if bytes(digest) not in kept])


def remove_attachments(documents: Collection[UUID]) -> None:
    """Those of these messages, with theirs; their bytes are left to the collector. Inside a transaction that holds the messages."""
    _remove(list(Document.objects.filter(part_of__in=documents).values_list("id", flat=True)))


def _remove(ids: list[UUID]) -> None:
    if not ids:
        return
    remove_attachments(ids)
    rows = list(Document.objects.select_for_update(no_key=True).filter(id__in=ids).order_by("id").values_list("id", "file_id"))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM kb_chunk WHERE document_id = ANY(%s)", [ids])
    Document.objects.filter(id__in=ids).delete()
    files = [file for _, file in rows if file]
    File.objects.filter(id__in=files, documents=None).delete()


def _item(run: IngestionRun, parent: RunItem, file: Mapping[str, Any], plan: Plan, *, refused: Mapping[str, str] | None) -> RunItem:
    message = parent.document
    if refused is not None:
        return RunItem(
            organization_id=run.organization_id,
            run=run,
            key=_key(message, file),
            key_hash=refused_hash(message, file["name"]),
            title=file["name"][:300],
            stage=RunItem.Stage.DONE,
            verdict=RunItem.Verdict.FAILED,
            reason=refused["reason"],
            error=refused["error"],
            changed_at=timezone.now(),
        )
    document = _document(message, file)
    channel = Channel.objects.select_related("knowledge_base__current").filter(source=run.source_id).first()
    listed = Listed(
        document=document,
        blob_id=UUID(file["blob"]),
        content_hash=bytes(document.file.sha256),
        size=file["size"],
        policy=policy_of(channel, document) if channel is not None else None,
    )
    return item_for(run, listed, plan)


def _document(message: Document, file: Mapping[str, Any]) -> Document:
    """The attachment's, which may be there already: then its bytes are the same. Whoever may read the message may read it."""
    digest = _identity(message, file)
    known = Document.objects.select_related("file").filter(source_id=message.source_id, key_hash=digest).first()
    if known is not None:
        return known
    blob = Blob.objects.get(id=file["blob"])
    stored = File.objects.create(
        organization_id=message.organization_id,
        blob=blob,
        name=_file_name(file["name"]),
        media_type=file["media_type"][:200],
        size=blob.size,
        sha256=bytes(blob.sha256),
        created_by=message.file.created_by if message.file else None,
        policy=message.file.policy if message.file else {},
        family=family_of(media_type=file["media_type"], name=file["name"], head=blobs.read_head(blob, HEAD_BYTES)),
    )
    return Document.objects.create(
        organization_id=message.organization_id,
        knowledge_base_id=message.knowledge_base_id,
        source_id=message.source_id,
        part_of=message,
        key=_key(message, file),
        key_hash=digest,
        title=PurePath(file["name"]).stem[:300] or file["name"][:300],
        media_type=file["media_type"][:200],
        file=stored,
        visibility=message.visibility,
        owner_id=message.owner_id,
        owner_key_id=message.owner_key_id,
    )


def _identity(message: Document, file: Mapping[str, Any]) -> bytes:
    return key_hash(f"{bytes(message.key_hash).hex()}\n{file['name']}\n{file['sha256']}")


def refused_hash(message: Document, name: str) -> bytes:
    """What the verdict of an attachment is known by that became no document."""
    return key_hash(f"{bytes(message.key_hash).hex()}\n{name}\nrefused")


def _key(message: Document, file: Mapping[str, Any]) -> str:
    return f"{message.key}/{file['name']}"[-8192:]


def _file_name(name: str) -> str:
    """Of an attachment that its message may call by a path; a name that is too long keeps its ending."""
    last = PurePath(name.replace("\\", "/")).name or "unnamed"
    return last if len(last) <= 255 else f"{last[:200]}{PurePath(last).suffix[-50:]}"


def _nesting(document: Document) -> int:
    """How many messages it lies in, itself included."""
    depth = 1
    while document.part_of is not None and depth <= MAX_NESTING:
        document, depth = document.part_of, depth + 1
    return depth
