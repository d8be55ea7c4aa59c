"""Files of upload sources: kept, read once when they come, replaced by name, deleted at once."""

from dataclasses import dataclass
from typing import IO

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import F, Sum

from config.errors import Conflict, ExtractionError, LecternError, NotFound
from ingestion.children import sandbox
from ingestion.extract.extraction import PROBE_CHARS, PROBE_SECONDS
from ingestion.recognition import recognition_for
from kb import blobs, schemas
from kb.models import Blob, Document, File, KnowledgeBase, Source, User, file_key, key_hash
from kb.schemas.source import Source as SourceEntry
from kb.schemas.source import SourceSettings, Upload


@dataclass(frozen=True, slots=True)
class Rejected:
    file_name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a batch; one bad file does not refuse the others."""

    documents: list[Document]
    rejected: list[Rejected]


def upload_limits(source: Source) -> Upload:
    """The `upload` block of the current version."""
    entry = _entry(source)
    return (entry.upload if entry else None) or Upload()


def ocr_setting(source: Source) -> str:
    """Its `settings.ocr`: whether text is recognized in pictures and scans."""
    entry = _entry(source)
    return (entry.settings if entry else SourceSettings()).ocr


def _entry(source: Source) -> SourceEntry | None:
    document = schemas.load_stored(KnowledgeBase.objects.select_related("current").get(id=source.knowledge_base_id).current.document)
    return next((entry for entry in document.sources if entry.id.replace("-", "") == source.id.hex), None)


def require_upload_source(source: Source) -> None:
    if source.kind != Source.Kind.UPLOAD:
        raise Conflict(f"The source '{source.name}' is of kind {source.kind}; only an upload source takes files.")


def store_files(source: Source, files: list[UploadedFile], *, user: User | None = None) -> Stored:
    """Store each file that can be read, under the source's limits; the others come back with their reason."""
    require_upload_source(source)
    limits = upload_limits(source)
    documents, rejected = [], []
    for file in files:
        try:
            documents.append(store_file(source, file, limits=limits, user=user))
        except LecternError as error:
            rejected.append(Rejected(file.name or "file", error.message))
    return Stored(documents, rejected)


def store_file(source: Source, file: UploadedFile, *, limits: Upload, user: User | None = None) -> Document:
    """Store one file; a file of the same name is replaced. Raises `LecternError` with the reason for a refusal."""
    name = (file.name or "file")[:255]
    check_file(source, name, file.size or 0, limits)  # before any byte is stored
    blob = blobs.store_stream(source.organization_id, file)
    return keep_blob(source, blob, name=name, declared_type=file.content_type, limits=limits, user=user)


def check_file(source: Source, name: str, size: int, limits: Upload) -> None:
    """Whether a file of that size could be taken now. Raises `ExtractionError`, or `Conflict` where the source is full."""
    if not size:
        raise ExtractionError(f"{name} is empty. Upload a file with text.", reason="empty", retires=True)
    if size > limits.max_file_bytes:
        raise ExtractionError(
            f"{name} has {size:,} bytes, more than upload.max_file_bytes ({limits.max_file_bytes:,}). Split it, or raise the limit.",
            reason="too_large",
            retires=True,
        )
    _check_room(source, file_key(name), size, limits)


def keep_blob(source: Source, blob: Blob, *, name: str, declared_type: str | None, limits: Upload, user: User | None) -> Document:
    """The same of bytes that are stored already."""
    key = file_key(name)
    media_type = probe(blob, name, declared_type, ocr=ocr_setting(source))
    with transaction.atomic():
        # One file at a time per source, against a fresh count: two uploads cannot fill the same headroom.
        now = Source.objects.select_for_update(no_key=True).filter(id=source.id, state=Source.State.ACTIVE).first()
        if now is None:  # removed while the bytes came in
            raise NotFound()
        require_upload_source(now)
        _check_room(source, key, blob.size, limits)
        return _attach(source, key, name, blob, media_type, user)


def probe(blob: Blob, name: str, declared_type: str | None, *, ocr: str = "auto") -> str:
    """Read the first characters as a run would, so that what cannot be read is refused now and not skipped later; returns the type.
    Where text would have to be recognized, that is left to the run: a picture is a picture here, whatever it shows."""
    with blobs.local_path(blob) as path:
        limits = {"stop_after_chars": PROBE_CHARS, "max_seconds": PROBE_SECONDS, **recognition_for(blob.organization_id, ocr=ocr).limits()}
        request = {"op": "extract", "path": str(path), "name": name, "declared_type": declared_type, "limits": limits, "chunk": None}
        result = sandbox(languages=False).run(request, owner=blob.organization_id)
    return result["extracted"]["media_type"]


def _check_room(source: Source, key: str, size: int, limits: Upload) -> None:
    others = Document.objects.filter(source=source, file__isnull=False, part_of=None).exclude(key_hash=key_hash(key))
    replaces = Document.objects.filter(source=source, key_hash=key_hash(key), file__isnull=False).exists()
    if not replaces and others.count() >= limits.max_files:
        raise Conflict(f"The source already holds upload.max_files ({limits.max_files}). Delete files, or raise the limit.")
    total = (others.aggregate(total=Sum("file__size"))["total"] or 0) + size
    if total > limits.max_total_bytes:
        raise Conflict(
            f"With this file the source would hold {total:,} bytes, more than upload.max_total_bytes ({limits.max_total_bytes:,})."
            " Delete files, or raise the limit."
        )


def _attach(source: Source, key: str, name: str, blob: Blob, media_type: str, user: User | None) -> Document:
    file = File.objects.create(
        organization_id=source.organization_id,
        blob=blob,
        name=name,
        media_type=media_type,
        size=blob.size,
        sha256=bytes(blob.sha256),
        created_by=user,
    )
    document, made = Document.objects.select_for_update(no_key=True).get_or_create(
        source=source,
        key_hash=key_hash(key),
        defaults={
            "organization_id": source.organization_id,
            "knowledge_base_id": source.knowledge_base_id,
            "key": name,
            "title": name.rsplit(".", 1)[0][:300] or name,
            "media_type": media_type,
            "file": file,
        },
    )
    if not made:
        previous = document.file
        # The name and bytes change; the version that was ingested goes on answering until the next run.
        fresh = {"tombstoned_at": None, "missed_runs": 0, "last_error": "", "last_reason": "", "refused_under": "", "epoch": F("epoch") + 1}
        Document.objects.filter(id=document.id).update(file=file, key=name, media_type=media_type, **fresh)
        document.refresh_from_db()
        if previous is not None and not previous.documents.exists():
            previous.delete()
    return document


def open_file(document: Document) -> IO[bytes]:
    """The stored bytes of a document's file."""
    from io import BytesIO

    return BytesIO(blobs.read_bytes(document.file.blob))
