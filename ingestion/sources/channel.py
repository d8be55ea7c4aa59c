"""Channels: their documents are the newest versions of what was uploaded. Uploads are taken in by pushes; a run of the channel takes
everything in again under the policies and the knowledge base's settings as they are now."""

from collections.abc import Iterator
from uuid import UUID

from config.errors import InvalidInput
from ingestion.sources.base import Listed
from kb.channels import explain_policy
from kb.models import Channel, Document, Source


def list_files(source: Source, *, after: UUID | None, limit: int) -> Iterator[Listed]:
    """The channel's documents in the order of their ids, from `after` on, each with its merged policy."""
    channel = Channel.objects.select_related("knowledge_base__current").filter(source=source).first()
    rows = Document.objects.filter(source=source, file__isnull=False).select_related("file").order_by("id")
    if after is not None:
        rows = rows.filter(id__gt=after)
    for document in rows[:limit] if channel is not None else ():
        file = document.file
        yield Listed(
            document=document,
            blob_id=file.blob_id,
            content_hash=bytes(file.sha256),
            size=file.size,
            policy=policy_of(channel, document),
        )


def policy_of(channel: Channel, document: Document) -> dict[str, object]:
    """The merged policy of a document's file, as its item keeps it."""
    file = document.file
    try:
        merged = explain_policy(channel, family=file.family, upload=file.policy)
    except InvalidInput:  # what the upload said does not fit the channel any more: the channel decides
        merged = explain_policy(channel, family=file.family)
    values = merged.values
    if document.part_of_id:  # a dataset is named for the files that are sent, and not for what comes with a message
        values = {**values, "table": {**values["table"], "name": None, "mode": "append", "partition_by": []}}
    return {"family": merged.family, "values": values}
