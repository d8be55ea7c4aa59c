"""Pushed work: single texts and deletions, claimed per document. It neither waits for a run nor blocks one."""

import unicodedata
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from config.errors import Conflict, InvalidInput, NotFound, TooLarge
from ingestion import claims, wakes
from ingestion.attachments import remove_attachments
from ingestion.models import IngestionRun, RunItem
from kb import blobs, vector_stores
from kb.models import Document, File, KnowledgeBase, Source, User, key_hash

UNNAMED = "unnamed"
MAX_TEXT_BYTES = 32 * 1024 * 1024
MAX_NAME_LENGTH = 300


def ingest_text(
    knowledge_base: KnowledgeBase,
    *,
    text: str,
    document_name: str | None = None,
    replace: bool = False,
    metadata: Mapping[str, Any] | None = None,
    user: User | None = None,
) -> IngestionRun:
    """Take in one text as a document; the run's id is the ingestion's id. What it replaces answers until it is published.

    Without `replace` every text is a document of its own, whatever its name. Raises `InvalidInput` (nothing to read, or
    `replace` without a name) and `TooLarge`.
    """
    if not text.strip():
        raise InvalidInput("The text is empty. Send the document's text as the body.")
    if "\x00" in text:
        raise InvalidInput("The text holds a NUL character: it is binary, or damaged. Send plain text; files go to an upload source.")
    name = _checked_name(document_name)
    if replace and not name:
        raise InvalidInput("replace=true needs a document_name: documents without a name are never replaced.")
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput("The text holds half of a surrogate pair, which is no character. Send well-formed UTF-8.") from error
    if len(content) > MAX_TEXT_BYTES:
        raise TooLarge(f"The text has {len(content):,} bytes, the limit is {MAX_TEXT_BYTES:,}. Split it, or use an upload source.")
    name = name or UNNAMED
    blob = blobs.store_bytes(knowledge_base.organization_id, content)
    source = direct_source(knowledge_base)
    with transaction.atomic():
        document = _claim_document(source, name, replace=replace)
        now = timezone.now()
        run = claims.claim(
            source,
            kind=IngestionRun.Kind.PUSH,
            trigger=IngestionRun.Trigger.API,
            version=knowledge_base.current,
            space=knowledge_base.space,
            user=user,
            listed_at=now,
            crawl_state={"document": str(document.id)},  # outlives the item, whose row is collected one day
        )
        RunItem.objects.create(
            organization_id=run.organization_id,
            run=run,
            document=document,
            key=f"{name}.md" if "." not in name else name,
            key_hash=bytes(document.key_hash),
            title=name,
            epoch=document.epoch,
            blob=blob,
            content_hash=bytes(blob.sha256),
            size=len(content),
            extracted={"given": dict(metadata)} if metadata else None,
            stage=RunItem.Stage.FETCHED,
            changed_at=now,
        )
        transaction.on_commit(partial(wakes.wake, run.id, "extract", interactive=True))
    return run


def _checked_name(name: str | None) -> str:
    """The name without blanks around it; a line break in one would be taken for the mark between a name and its number."""
    name = (name or "").strip()
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidInput(f"document_name has {len(name):,} characters, the limit is {MAX_NAME_LENGTH}. Shorten it.")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise InvalidInput("document_name holds a control character, such as a line break. Remove it.")
    return name


def direct_source(knowledge_base: KnowledgeBase) -> Source:
    source, _ = Source.objects.get_or_create(
        knowledge_base=knowledge_base,
        kind=Source.Kind.DIRECT,
        defaults={"organization_id": knowledge_base.organization_id, "name": "Direct"},
    )
    return source


def _claim_document(source: Source, name: str, *, replace: bool) -> Document:
    """The document that a text becomes; raising its epoch makes whatever is under way for it drop its work."""
    key = name if replace else f"{name}\n{uuid4().hex}"
    document, made = Document.objects.get_or_create(
        source=source,
        key_hash=key_hash(key),
        defaults={
            "organization_id": source.organization_id,
            "knowledge_base_id": source.knowledge_base_id,
            "key": key,
            "title": name,
            "epoch": 1,
        },
    )
    if not made:
        Document.objects.filter(id=document.id).update(epoch=F("epoch") + 1)
        document.refresh_from_db()
    return document


def delete_document(document: Document) -> int:
    """Take a document out at once, also in the middle of a run; returns how many chunks went.

    A file of an upload source goes with it; a page of a crawled site comes back with the next run, so that is refused. StoreError,
    and everything stays, while the store that holds its vectors does not answer.
    """
    vector_stores.require_answer(document.id)
    with transaction.atomic():
        row = Document.objects.select_for_update(no_key=True, of=("self",)).select_related("source", "file").filter(id=document.id).first()
        if row is None:
            raise NotFound()
        if row.source.kind == Source.Kind.WEB:
            raise Conflict("This page would come back with the next run. Exclude it by web.exclude_patterns instead.")
        file = row.file
        replaced = list(row.versions.exclude(id=row.file_id).values_list("id", flat=True))
        chunks, _ = row.chunks.all().delete()
        remove_attachments([row.id])
        row.delete()
        File.objects.filter(id__in=replaced).delete()
        if file is not None and not file.documents.exists():
            file.delete()
    return chunks
