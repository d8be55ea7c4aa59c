"""Files of an upload source: put there, listed with their state, read back, deleted at once."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import TooManyFilesSent
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.errors import InvalidInput, TooLarge
from config.openapi import IDEMPOTENCY_KEY, PAGE_PARAMETERS, Paged
from config.paging import NEWEST_FIRST, limit_of, take_page
from ingestion.api.documents import FILTERS
from ingestion.api.parameters import choice_of, text_of
from ingestion.failures import is_retryable
from ingestion.services import files, pushes
from ingestion.services.documents import State, find_documents, with_state_of
from ingestion.services.file_status import Status, source_status
from kb import access
from kb.access import Level
from kb.api.idempotency import idempotent
from kb.models import Document, Source

MAX_REQUEST_BYTES = 60 * 1024 * 1024  # one file of the largest size (50 MiB), and what surrounds it


class FileRow(BaseModel):
    """A file as it is kept; `state` tells how what answers stands to it."""

    file_id: UUID = Field(description="Of the document too: a file of a source is its document.")
    file_name: str
    media_type: str
    size: int
    content_hash: str = Field(description="SHA-256 of the bytes.")
    uploaded_at: datetime
    uploaded_by: str | None
    state: State
    status: Status = Field(description="The same as files of channels have: pending, processing, indexed, stored or failed.")
    error: str | None
    reason: str | None = Field(description="The code of the error.")
    retryable: bool | None = Field(description="Of a failed one: whether the next run may read it. Else upload another file.")
    warnings: list[str] = Field(description="About what answers: what was cut, lost or assumed when it was read.")
    chunks: int
    last_ingested_at: datetime | None


class RejectedFile(BaseModel):
    file_name: str
    reason: str


class FilesStored(BaseModel):
    """One bad file does not refuse the others. 400 with the same body when none was stored."""

    stored: list[FileRow]
    rejected: list[RejectedFile]


class FileDeleted(BaseModel):
    status: str = "deleted"
    file_id: UUID
    chunks_removed: int


class FileForm(BaseModel):
    files: list[bytes] = Field(description="One part named `files` for each file.", json_schema_extra={"items": {"format": "binary"}})


def file_row(document: Document) -> FileRow:
    file = document.file
    return FileRow(
        file_id=document.id,
        file_name=document.key,
        media_type=file.media_type,
        size=file.size,
        content_hash=bytes(file.sha256).hex(),
        uploaded_at=file.created_at,
        uploaded_by=file.created_by.get_username() if file.created_by else None,
        state=document.state,
        status=source_status(document),
        error=document.last_error or None,
        reason=(document.last_reason or None) if document.last_error else None,
        retryable=is_retryable(document.last_reason) if document.last_error else None,
        warnings=document.warnings,
        chunks=document.chunk_count,
        last_ingested_at=document.last_ingested_at,
    )


class FilesView(APIView):
    parser_classes = [MultiPartParser]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # A session's CSRF check may read the form, so the size is looked at before; with a key, who asks comes first.
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            _refuse_large(request)
        super().initial(request, *args, **kwargs)
        _refuse_large(request)

    @extend_schema(
        operation_id="list_source_files", responses={200: Paged[FileRow]}, parameters=[*FILTERS, *PAGE_PARAMETERS], tags=["files"]
    )
    def get(self, request: Request, kb_id: str, source_id: str) -> Response:
        source = upload_source(request, kb_id, source_id, Level.VIEW)
        found = find_documents(
            access.rows(request.user, Document),
            source_id=source.id,
            state=choice_of(request, "state", list(State)),
            query=text_of(request, "q"),
            files_only=True,
        )
        page = take_page(found, cursor=request.query_params.get("cursor"), limit=limit_of(request), ordering=NEWEST_FIRST)
        return Response({"items": [file_row(row).model_dump(mode="json") for row in page.items], "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="upload_source_files",
        request={"multipart/form-data": FileForm},
        responses={200: FilesStored, 400: FilesStored},
        parameters=[IDEMPOTENCY_KEY],
        tags=["files"],
    )
    @idempotent
    def post(self, request: Request, kb_id: str, source_id: str) -> Response:
        """Parts named `files`. A file of a name that is there replaces it, and answers with its new content after the next run."""
        source = upload_source(request, kb_id, source_id, Level.EDIT)
        sent = _sent_files(request)
        if not sent:
            raise InvalidInput("There is no file in the request. Send multipart/form-data with one part named `files` for each file.")
        result = files.store_files(source, sent, user=request.user.user)
        kept = {document.id for document in result.documents}  # a name that was sent twice is one file: the last
        rows = find_documents(access.rows(request.user, Document), source_id=source.id, files_only=True).filter(id__in=kept)
        answer = FilesStored(
            stored=[file_row(document) for document in rows.order_by("created_at", "id")],
            rejected=[RejectedFile(file_name=row.file_name, reason=row.reason) for row in result.rejected],
        )
        return Response(answer.model_dump(mode="json"), status=200 if kept else 400)


class FileView(APIView):
    @extend_schema(operation_id="read_source_file", responses={200: FileRow}, tags=["files"])
    def get(self, request: Request, kb_id: str, source_id: str, file_id: str) -> Response:
        return Response(file_row(with_state_of(_file(request, kb_id, source_id, file_id))).model_dump(mode="json"))

    @extend_schema(operation_id="delete_source_file", request=None, responses={200: FileDeleted}, tags=["files"])
    def delete(self, request: Request, kb_id: str, source_id: str, file_id: str) -> Response:
        """It stops answering at once, also in the middle of a run. 503 if that failed: the file is kept then."""
        document = _file(request, kb_id, source_id, file_id, Level.EDIT)
        removed = pushes.delete_document(document)
        return Response(FileDeleted(file_id=document.id, chunks_removed=removed).model_dump(mode="json"))


class FileContentView(APIView):
    @extend_schema(operation_id="download_source_file", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY}, tags=["files"])
    def get(self, request: Request, kb_id: str, source_id: str, file_id: str) -> HttpResponse:
        """The bytes as they were uploaded, always as a download: a page of a stranger must never run here."""
        document = _file(request, kb_id, source_id, file_id)
        with files.open_file(document) as stored:
            response = HttpResponse(stored.read(), content_type=document.file.media_type or "application/octet-stream")
        response["Content-Disposition"] = content_disposition_header(True, document.file.name)
        response["X-Content-Type-Options"] = "nosniff"
        response["Content-Security-Policy"] = "sandbox; default-src 'none'"
        response["Cache-Control"] = "private, no-store"
        return response


def upload_source(request: Request, kb_id: str, source_id: str, level: Level) -> Source:
    knowledge_base = access.get_knowledge_base(request.user, kb_id, level)
    source = access.get_source(request.user, knowledge_base, source_id)
    files.require_upload_source(source)
    return source


def _file(request: Request, kb_id: str, source_id: str, file_id: str, level: Level = Level.VIEW) -> Document:
    knowledge_base = access.get_knowledge_base(request.user, kb_id, level)
    source = access.get_source(request.user, knowledge_base, source_id)
    return access.get_row(request.user, Document, file_id, level, source=source, file__isnull=False)


def _sent_files(request: Request) -> list[UploadedFile]:
    try:
        return request.FILES.getlist("files")
    except TooManyFilesSent:
        most = settings.DATA_UPLOAD_MAX_NUMBER_FILES
        raise InvalidInput(f"There are more than {most} files in the request. Send them in several requests.") from None


def _refuse_large(request: Request) -> None:
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdigit() and int(length) > MAX_REQUEST_BYTES:
        message = f"The request has {int(length):,} bytes, the limit is {MAX_REQUEST_BYTES:,}. Send the files in several requests."
        raise TooLarge(message, max_bytes=MAX_REQUEST_BYTES)
