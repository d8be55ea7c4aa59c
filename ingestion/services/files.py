"""Files of upload sources: kept, read once when they come, replaced by name, deleted at once."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import Count, Sum

from config.errors import Conflict, ExtractionError, LecternError, NotFound
from ingestion.children import sandbox
from ingestion.extract.extraction import PROBE_CHARS, PROBE_SECONDS
from ingestion.recognition import recognition_for
from ingestion.rows import update_rows
from kb import blobs, schemas
from kb.models import Blob, Document, File, KnowledgeBase, Source, User, file_key, key_hash
from kb.schemas.source import Source as SourceEntry
from kb.schemas.source import SourceSettings, Upload

PROBE_TURN_SECONDS = 2.0  # then the child is free for whoever waits for it


@dataclass(frozen=True, slots=True)
class Rejected:
    file_name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a batch; one bad file does not refuse the others. A name that came twice is one document."""

    documents: list[Document]
    rejected: list[Rejected]


@dataclass(slots=True)
class Incoming:
    """A file on its way in, as far as it has come: stored, read, kept; or refused on the way."""

    name: str
    size: int
    declared_type: str | None
    content: UploadedFile | None = None
    blob: Blob | None = None
    media_type: str = ""
    document: Document | None = None
    refusal: LecternError | None = None

    @property
    def key(self) -> bytes:
        return key_hash(file_key(self.name))


@dataclass(slots=True)
class Room:
    """What a source holds; `sizes` are those of files that could be replaced, by their keys."""

    limits: Upload
    number: int
    total: int
    sizes: dict[bytes, int]

    def check(self, file: Incoming) -> None:
        """Whether it could be taken. Raises `Conflict`."""
        if file.key not in self.sizes and self.number >= self.limits.max_files:
            raise Conflict(f"The source already holds upload.max_files ({self.limits.max_files}). Delete files, or raise the limit.")
        total = self.total - self.sizes.get(file.key, 0) + file.size
        if total > self.limits.max_total_bytes:
            raise Conflict(
                f"With this file the source would hold {total:,} bytes, more than upload.max_total_bytes ({self.limits.max_total_bytes:,})."
                " Delete files, or raise the limit."
            )

    def take(self, file: Incoming) -> None:
        """Count it in. Raises `Conflict` where there is no room."""
        self.check(file)
        self.number += file.key not in self.sizes
        self.total += file.size - self.sizes.get(file.key, 0)
        self.sizes[file.key] = file.size


def upload_limits(source: Source) -> Upload:
    """The `upload` block of the current version."""
    entry = _entry(source)
    return (entry.upload if entry else None) or Upload()


def _entry(source: Source) -> SourceEntry | None:
    document = schemas.load_stored(KnowledgeBase.objects.select_related("current").get(id=source.knowledge_base_id).current.document)
    return next((entry for entry in document.sources if entry.id.replace("-", "") == source.id.hex), None)


def require_upload_source(source: Source) -> None:
    if source.kind != Source.Kind.UPLOAD:
        raise Conflict(f"The source '{source.name}' is of kind {source.kind}; only an upload source takes files.")


def store_files(source: Source, files: Sequence[UploadedFile], *, user: User | None = None) -> Stored:
    """Store each file that can be read, under the source's limits; the others come back with their reason."""
    require_upload_source(source)
    incoming = [Incoming((file.name or "file")[:255], file.size or 0, file.content_type, content=file) for file in files]
    _take_in(source, incoming, user)
    documents = {file.document.id: file.document for file in incoming if file.document}
    return Stored(list(documents.values()), [Rejected(file.name, file.refusal.message) for file in incoming if file.refusal])


def keep_blob(source: Source, blob: Blob, *, name: str, declared_type: str | None, user: User | None) -> Document:
    """The same of one file whose bytes are stored already. Raises `LecternError` with the reason for a refusal."""
    file = Incoming(name, blob.size, declared_type, blob=blob)
    _take_in(source, [file], user)
    if file.refusal:
        raise file.refusal
    return file.document


def check_file(source: Source, name: str, size: int) -> None:
    """Whether a file of that size could be taken now. Raises `ExtractionError`, or `Conflict` where the source is full."""
    file = Incoming(name, size, None)
    _check(_room(source, upload_limits(source), [file]), [file])
    if file.refusal:
        raise file.refusal


def _take_in(source: Source, incoming: Sequence[Incoming], user: User | None) -> None:
    """All files take each step together: what the source holds is counted, rows are written and children are asked for many at once."""
    entry = _entry(source)
    limits, ocr = (entry and entry.upload) or Upload(), (entry.settings if entry else SourceSettings()).ocr
    steps = (
        lambda files: _check(_room(source, limits, files), files),  # before any byte is stored
        lambda files: _store(source, files),
        lambda files: _probe(source, files, ocr),
        lambda files: _keep(source, files, limits, user),
    )
    for step in steps:
        files = [file for file in incoming if file.refusal is None]
        try:
            step(files)
        except LecternError as error:
            for file in files:
                file.refusal = file.refusal or error


def _check(room: Room, files: Sequence[Incoming]) -> None:
    for file in files:
        try:
            _check_size(file, room.limits)
            room.check(file)
        except LecternError as error:
            file.refusal = error


def _check_size(file: Incoming, limits: Upload) -> None:
    if not file.size:
        raise ExtractionError(f"{file.name} is empty. Upload a file with text.", reason="empty", retires=True)
    if file.size > limits.max_file_bytes:
        raise ExtractionError(
            f"{file.name} has {file.size:,} bytes, more than upload.max_file_bytes ({limits.max_file_bytes:,})."
            " Split it, or raise the limit.",
            reason="too_large",
            retires=True,
        )


def _room(source: Source, limits: Upload, files: Sequence[Incoming]) -> Room:
    held = Document.objects.filter(source=source, file__isnull=False, part_of=None)
    totals = held.aggregate(number=Count("id"), total=Sum("file__size", default=0))
    sizes = held.filter(key_hash__in={file.key for file in files}).values_list("key_hash", "file__size")
    return Room(limits, totals["number"], totals["total"], {bytes(key): size for key, size in sizes})


def _store(source: Source, files: Sequence[Incoming]) -> None:
    new = [file for file in files if file.blob is None]
    for file, blob in zip(new, blobs.store_streams(source.organization_id, [file.content for file in new]), strict=True):
        file.blob = blob


def _probe(source: Source, files: Sequence[Incoming], ocr: str) -> None:
    """Read the first characters as a run would, so that what cannot be read is refused now and not skipped later.
    Where text would have to be recognized, that is left to the run: a picture is a picture here, whatever it shows."""
    limits = {"stop_after_chars": PROBE_CHARS, "max_seconds": PROBE_SECONDS, **recognition_for(source.organization_id, ocr=ocr).limits()}
    asked: list[tuple[Incoming, dict[str, Any]]] = []
    with ExitStack() as paths:
        for file in files:
            try:
                path = paths.enter_context(blobs.local_path(file.blob))
            except LecternError as error:
                file.refusal = error
                continue
            named = {"path": str(path), "name": file.name, "declared_type": file.declared_type}
            asked.append((file, {"op": "extract", **named, "limits": limits, "chunk": None}))
        while asked:
            requests = [request for _, request in asked]
            results = sandbox(languages=False).run_many(requests, seconds=PROBE_TURN_SECONDS, owner=source.organization_id)
            for (file, _), result in zip(asked, results, strict=False):
                if isinstance(result, ExtractionError):
                    file.refusal = result
                else:
                    file.media_type = result["extracted"]["media_type"]
            asked = asked[len(results) :]


def _keep(source: Source, files: Sequence[Incoming], limits: Upload, user: User | None) -> None:
    with transaction.atomic():
        # One request at a time per source, against a fresh count: two uploads cannot fill the same headroom.
        now = Source.objects.select_for_update(no_key=True).filter(id=source.id, state=Source.State.ACTIVE).first()
        if now is None:  # removed while the bytes came in
            raise NotFound()
        require_upload_source(now)
        room = _room(now, limits, files)
        for file in files:
            try:
                room.take(file)
            except Conflict as error:
                file.refusal = error
        _attach(now, [file for file in files if file.refusal is None], user)


def _attach(source: Source, kept: Sequence[Incoming], user: User | None) -> None:
    """Make files of them, and documents of files; of a name that came twice the last one counts."""
    latest = {file.key: file for file in kept}
    files = {key: _file(source, file, user) for key, file in latest.items()}
    File.objects.bulk_create(files.values())
    rows = Document.objects.select_for_update(no_key=True).filter(source=source, key_hash__in=list(latest)).order_by("id")
    documents = {bytes(row.key_hash): row for row in rows}
    replaced = [row.file_id for row in documents.values() if row.file_id]
    changes = [(row.id, _replacement(row, latest[key], files[key])) for key, row in documents.items()]
    if changes:
        update_rows(Document, changes)
        File.objects.filter(id__in=replaced, documents=None).delete()
    new = {key: _document(source, file, files[key]) for key, file in latest.items() if key not in documents}
    Document.objects.bulk_create(new.values())
    documents |= new
    for file in kept:
        file.document = documents[file.key]


def _file(source: Source, file: Incoming, user: User | None) -> File:
    return File(
        organization_id=source.organization_id,
        blob=file.blob,
        name=file.name,
        media_type=file.media_type,
        size=file.blob.size,
        sha256=bytes(file.blob.sha256),
        created_by=user,
    )


def _document(source: Source, file: Incoming, stored: File) -> Document:
    return Document(
        organization_id=source.organization_id,
        knowledge_base_id=source.knowledge_base_id,
        source=source,
        key=file.name,
        key_hash=file.key,
        title=file.name.rsplit(".", 1)[0][:300] or file.name,
        media_type=file.media_type,
        file=stored,
    )


def _replacement(document: Document, file: Incoming, stored: File) -> dict[str, Any]:
    """The name and bytes change; the version that was ingested goes on answering until the next run."""
    values = {
        "file": stored,
        "key": file.name,
        "media_type": file.media_type,
        "tombstoned_at": None,
        "missed_runs": 0,
        "last_error": "",
        "last_reason": "",
        "refused_under": "",
        "epoch": document.epoch + 1,
    }
    for name, value in values.items():
        setattr(document, name, value)
    return values


def open_file(document: Document) -> IO[bytes]:
    """The stored bytes of a document's file."""
    return BytesIO(blobs.read_bytes(document.file.blob))
