"""Files of channels: sent in one request each, read back, tried again, deleted."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.openapi import IDEMPOTENCY_KEY, PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from ingestion.api.downloads import download
from ingestion.api.parameters import choice_of, text_of
from ingestion.api.received import fingerprint, let_go, received
from ingestion.services import channel_files
from ingestion.services.attached import attachments_of
from ingestion.services.file_status import Status, failure_of, with_status
from kb import access, blobs
from kb.access import Level
from kb.api.channels import PolicyAnswer, policy_answer
from kb.api.idempotency import idempotent
from kb.channels import explain_policy, find_channel, get_channel
from kb.models import Document, File

ROUTE = "/api/v1/files"


class FileAnswer(BaseModel):
    """One version of a file of a channel. The same title again is the next version of the same `resource_id`."""

    id: UUID
    resource_id: UUID = Field(description="The document that all versions are of; `GET /documents/{document_id}` has its chunks.")
    version: int
    is_current: bool = Field(description="Whether it is the newest version.")
    title: str
    file_name: str
    media_type: str
    family: str = Field(description="Of formats: what its defaults come from.")
    bytes: int
    checksum: str = Field(description="SHA-256 of the bytes.")
    channel_id: UUID
    knowledge_base_id: UUID
    visibility: Document.Visibility
    status: Status
    error: str | None = Field(description="Why it failed, and what to do.")
    reason: str | None = Field(description="The code of the error.")
    retryable: bool | None = Field(description="Of a failed one: whether trying it again may help; else upload another file.")
    warnings: list[str] = Field(description="About what answers of this version: what was cut, lost or assumed when it was read.")
    chunks: int = Field(description="That answer now, made of this version.")
    uploaded_at: datetime
    uploaded_by: str | None
    indexed_at: datetime | None


class AttachmentAnswer(BaseModel):
    """What came with a message, at any depth. One that was refused has no document."""

    document_id: UUID | None
    name: str = Field(description="Of one in a message that is attached itself, behind that one's name.")
    status: Status
    error: str | None
    reason: str | None
    chunks: int


class FileDetail(FileAnswer):
    """One file, with what is looked up for one at a time."""

    attachments: list[AttachmentAnswer] = Field(description="Of a message: files of their own, each with what became of it.")


class UploadForm(BaseModel):
    file: bytes = Field(description="The file.", json_schema_extra={"format": "binary"})
    title: str = Field(default="", description="What it is known by; the file's name where none is given.")
    channel: str = Field(default="", description="Id or name; the default channel where none is given.")
    visibility: Document.Visibility = Document.Visibility.PRIVATE
    policy: str = Field(default="", description="JSON: its layer of the ingest policy.")


class FileRemoved(BaseModel):
    status: str = "deleted"
    file_id: UUID
    resource_deleted: bool = Field(description="False when only this version went.")
    chunks_removed: int
    restored_file_id: UUID | None = Field(default=None, description="The earlier version that is read again in place of a failed one.")


def file_answer(file: File) -> FileAnswer:
    document = file.resource
    failed = file.status == Status.FAILED
    reason, error, retryable = failure_of(file) if failed else (None, None, None)
    answers = document.answering_id == file.id
    return FileAnswer(
        id=file.id,
        resource_id=document.id,
        version=file.version,
        is_current=document.file_id == file.id,
        title=document.key,
        file_name=file.name,
        media_type=file.media_type or (document.media_type if answers else ""),
        family=file.family,
        bytes=file.size,
        checksum=bytes(file.sha256).hex(),
        channel_id=document.source.channel.id,
        knowledge_base_id=document.knowledge_base_id,
        visibility=document.visibility,
        status=file.status,
        error=error,
        reason=reason,
        retryable=retryable,
        warnings=document.warnings if answers else [],
        chunks=document.chunk_count if answers else 0,
        uploaded_at=file.created_at,
        uploaded_by=file.created_by.get_username() if file.created_by else None,
        indexed_at=document.last_ingested_at if answers else None,
    )


def _rows(request: Request) -> Any:
    return with_status(access.files(request.user)).select_related("resource__source__channel", "created_by")


def read_answer(request: Request, file: File) -> FileAnswer:
    return file_answer(_rows(request).get(id=file.id))


def _answer(request: Request, file: File, status: int = 200) -> Response:
    headers = {"Location": f"{ROUTE}/{file.id}"} if status == 201 else None
    return Response(read_answer(request, file).model_dump(mode="json"), status=status, headers=headers)


class ChannelFilesView(APIView):
    parser_classes = [MultiPartParser]

    @extend_schema(
        operation_id="list_files",
        responses={200: Paged[FileAnswer]},
        parameters=[
            query("channel", "Id of a channel."),
            query("status", f"One of {', '.join(Status)}.", enum=list(Status)),
            query("q", "Words of the title or of the file's name."),
            query("versions", "`all` lists versions that were replaced too.", enum=["current", "all"], default="current"),
            *PAGE_PARAMETERS,
        ],
        tags=["files"],
    )
    def get(self, request: Request) -> Response:
        """Files of channels that you may see, newest first."""
        rows = channel_files.find_files(
            _rows(request),
            channel=get_channel(request.user, named) if (named := request.query_params.get("channel")) else None,
            status=choice_of(request, "status", list(Status)),
            text=text_of(request, "q"),
            every_version=choice_of(request, "versions", ["current", "all"]) == "all",
        )
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request))
        return Response({"items": [file_answer(row).model_dump(mode="json") for row in page.items], "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="upload_file",
        request={"multipart/form-data": UploadForm, "application/octet-stream": OpenApiTypes.BINARY},
        responses={201: FileAnswer},
        parameters=[
            query("title", "What it is known by: the same title again is a new version. Also as X-Lectern-Title, percent-encoded UTF-8."),
            query("channel", "Id or name; the default channel without."),
            query("visibility", "Who finds and reads it.", enum=Document.Visibility.values, default=Document.Visibility.PRIVATE),
            query("file_name", "Of a raw body: its name, whose ending may tell the format."),
            query("policy", "JSON: its layer of the ingest policy."),
            IDEMPOTENCY_KEY,
        ],
        tags=["files"],
    )
    @idempotent(digest=fingerprint)
    def post(self, request: Request) -> Response:
        """The bytes as the body, or as the part `file` of a form. It answers once it is `indexed`; an earlier version until then."""
        sent = received(request)
        channel = find_channel(request.user, sent.channel)
        upload = sent.upload()
        blob = blobs.store_stream(channel.organization_id, sent.stream)
        return _answer(request, channel_files.add_file(request.user, channel, blob, upload=upload), 201)

    def finalize_response(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        let_go(request)
        return super().finalize_response(request, *args, **kwargs)


class ChannelFileView(APIView):
    @extend_schema(operation_id="read_file", responses={200: FileDetail}, tags=["files"])
    def get(self, request: Request, file_id: str) -> Response:
        """By its own id, or by its resource's: then the newest version."""
        answer = read_answer(request, file := access.get_file(request.user, file_id))
        found = attachments_of(file.resource) if file.id in (file.resource.answering_id, file.resource.file_id) else []
        rows = [AttachmentAnswer.model_validate(each, from_attributes=True) for each in found]
        return Response(FileDetail(**dict(answer), attachments=rows).model_dump(mode="json"))

    @extend_schema(operation_id="delete_file", request=None, responses={200: FileRemoved}, tags=["files"])
    def delete(self, request: Request, file_id: str) -> Response:
        """The newest version goes with all others, and nothing of them answers. While an earlier one answers, only the newest goes. Of a
        failed one that has taken the earlier out of the answers, only it goes too, and the earlier is read again."""
        file = access.get_file(request.user, file_id, Level.EDIT)
        removed = channel_files.delete_file(file, actor=request.user)
        answer = FileRemoved(
            file_id=file.id, resource_deleted=removed.document, chunks_removed=removed.chunks, restored_file_id=removed.restored
        )
        return Response(answer.model_dump(mode="json"))


class ChannelFileContentView(APIView):
    @extend_schema(operation_id="download_file", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY}, tags=["files"])
    def get(self, request: Request, file_id: str) -> HttpResponseBase:
        """The bytes as they were sent, always as a download."""
        file = access.get_file(request.user, file_id)
        return download(request, file.blob, name=file.name, media_type=file.media_type)


class ChannelFileVersionsView(APIView):
    @extend_schema(operation_id="list_file_versions", responses={200: Paged[FileAnswer]}, parameters=PAGE_PARAMETERS, tags=["files"])
    def get(self, request: Request, file_id: str) -> Response:
        """Every version of what this file is one of, newest first."""
        file = access.get_file(request.user, file_id)
        rows = _rows(request).filter(resource=file.resource_id)
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request), ordering=("-version", "-id"))
        return Response({"items": [file_answer(row).model_dump(mode="json") for row in page.items], "next_cursor": page.next_cursor})


class ChannelFileRetryView(APIView):
    @extend_schema(operation_id="retry_file", request=None, responses={202: FileAnswer}, tags=["files"])
    def post(self, request: Request, file_id: str) -> Response:
        """Try a failed file again, under the policy as it is now. 409 for one that has not failed."""
        file = access.get_file(request.user, file_id, Level.EDIT)
        channel = get_channel(request.user, file.resource.source.channel.id, Level.EDIT)
        return _answer(request, channel_files.retry_file(request.user, channel, file), 202)


class ChannelFilePolicyView(APIView):
    @extend_schema(operation_id="explain_file_policy", responses={200: PolicyAnswer}, tags=["files"])
    def get(self, request: Request, file_id: str) -> Response:
        """The merged policy of this file as it would be worked by now, and where each key comes from."""
        file = access.get_file(request.user, file_id)
        channel = get_channel(request.user, file.resource.source.channel.id)
        return policy_answer(explain_policy(channel, family=file.family, upload=file.policy))
