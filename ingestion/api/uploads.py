"""Uploads outside of a form: a signed address for one piece, tus for several, and the request that makes a file of them."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body, validate
from config.errors import InvalidInput
from config.openapi import header, query
from ingestion.api import tus
from ingestion.api.channel_files import FileAnswer, read_answer
from ingestion.api.files import FileRow, file_row, upload_source
from ingestion.api.received import said_of
from ingestion.services import uploads as services
from ingestion.services.documents import with_state_of
from kb import access, uploads
from kb.access import Level
from kb.channels import find_channel
from kb.models import Document, File, Upload

SHA256 = "^[0-9a-fA-F]{64}$"
TUS = header("Tus-Resumable", f"{tus.VERSION}, of resumable uploads.")


class UploadWanted(BaseModel):
    """A file that will be sent in one piece."""

    file_name: str = Field(min_length=1, max_length=255, description="A plain name, without a path.")
    size: int = Field(ge=1, strict=True, description="Bytes; exactly so many have to come.")
    sha256: str = Field(pattern=SHA256, description="Of the bytes, in hex; others are refused.")
    media_type: str = Field(
        "", max_length=200, pattern=r"^([\w.+-]+/[\w.+-]+)?$", description="What a browser takes it for; the bytes decide."
    )


class UploadUrl(BaseModel):
    """Send the bytes to `upload_url` with `method` and exactly these headers, then POST to `complete_url`."""

    upload_id: UUID
    upload_url: str
    method: str
    headers: dict[str, str]
    expires_at: datetime
    complete_url: str


class UploadDone(BaseModel):
    sha256: str | None = Field(None, pattern=SHA256, description="Of the whole file, in hex; needed where it was not announced.")


class UploadedFile(BaseModel):
    upload_id: UUID
    target: Upload.Target
    file: FileRow | FileAnswer = Field(description="Of an upload source, or of a channel.")


class SourceUploadUrlView(APIView):
    @extend_schema(operation_id="upload_url", request=UploadWanted, responses={201: UploadUrl}, tags=["files"])
    def post(self, request: Request, kb_id: str, source_id: str) -> Response:
        """An address for the bytes of one file, for 15 minutes and one use: of the object store, where files are kept in one."""
        source = upload_source(request, kb_id, source_id, Level.EDIT)
        wanted = parse_body(request, UploadWanted)
        announced = services.Announced(wanted.file_name, wanted.size, bytes.fromhex(wanted.sha256), wanted.media_type)
        return _url_answer(request, services.announce_to_source(request.user, source, announced, is_resumable=False))


class ChannelUploadWanted(UploadWanted):
    """The same for a channel, with what `POST /files` takes."""

    title: str = Field("", max_length=300, description="What it is known by; the file's name where none is given.")
    channel: str = Field("", max_length=200, description="Id or name; the default channel where none is given.")
    visibility: Document.Visibility = Document.Visibility.PRIVATE
    policy: dict[str, Any] = Field(default_factory=dict, description="Its layer of the ingest policy.")


class ChannelUploadUrlView(APIView):
    @extend_schema(operation_id="file_upload_url", request=ChannelUploadWanted, responses={201: UploadUrl}, tags=["files"])
    def post(self, request: Request) -> Response:
        """An address for the bytes of one file of a channel, for 15 minutes and one use."""
        wanted = parse_body(request, ChannelUploadWanted)
        announced = services.Announced(wanted.file_name, wanted.size, bytes.fromhex(wanted.sha256), wanted.media_type)
        fields = {"title": wanted.title or wanted.file_name, "visibility": wanted.visibility, "policy": json.dumps(wanted.policy)}
        return _url_answer(request, _announce(request, announced, wanted.channel, fields, is_resumable=False))


class TusView(APIView):
    """Every answer carries Tus-Resumable."""

    def options(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return tus.options()

    def finalize_response(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        return tus.stamped(super().finalize_response(request, *args, **kwargs))


class SourceUploadsView(TusView):
    @extend_schema(
        operation_id="begin_source_upload",
        request=None,
        responses={201: None},
        parameters=[
            TUS,
            header("Upload-Length", "Bytes of the file.", required=True),
            header("Upload-Metadata", "`filename`, and if wanted `filetype` and `sha256` (hex), each in Base64.", required=True),
        ],
        tags=["files"],
    )
    def post(self, request: Request, kb_id: str, source_id: str) -> Response:
        """Begin a resumable upload (tus creation): `Location` says where its pieces go, within 24 hours of the last one."""
        source = upload_source(request, kb_id, source_id, Level.EDIT)
        tus.require_version(request)
        return _begun(request, services.announce_to_source(request.user, source, announced_by(request), is_resumable=True))


class ChannelUploadsView(TusView):
    @extend_schema(
        operation_id="begin_file_upload",
        request=None,
        responses={201: None},
        parameters=[
            TUS,
            header("Upload-Length", "Bytes of the file.", required=True),
            header(
                "Upload-Metadata",
                "`filename`, and if wanted `filetype`, `sha256` (hex), `title`, `channel`, `visibility` and `policy` (JSON), in Base64.",
                required=True,
            ),
        ],
        tags=["files"],
    )
    def post(self, request: Request) -> Response:
        """Begin a resumable upload (tus creation) into a channel."""
        tus.require_version(request)
        announced, said = announced_by(request), tus.metadata(request)
        fields = {**said, "title": said.get("title") or announced.file_name}
        return _begun(request, _announce(request, announced, said.get("channel", ""), fields, is_resumable=True))


class UploadView(TusView):
    @extend_schema(operation_id="read_upload", responses={200: None}, parameters=[TUS], tags=["files"])
    def head(self, request: Request, upload_id: str) -> Response:
        """How much has come: `Upload-Offset`."""
        upload = _resumable(request, upload_id)
        return tus.answer(200, upload, Upload_Length=str(upload.size), Cache_Control="no-store")

    @extend_schema(
        operation_id="append_upload",
        request={tus.PIECE: OpenApiTypes.BINARY},
        responses={204: None},
        parameters=[TUS, header("Upload-Offset", "Where the piece begins.", required=True)],
        tags=["files"],
    )
    def patch(self, request: Request, upload_id: str) -> Response:
        """The next piece. What a broken connection brought of one is not kept: send pieces of a few megabytes. 409 names the offset."""
        upload = _resumable(request, upload_id)
        if (request.content_type or "").partition(";")[0].strip() != tus.PIECE:
            raise UnsupportedMediaType(request.content_type or "", detail=f"Send the piece as {tus.PIECE}.")
        uploads.receive_part(upload, tus.number(request, "Upload-Offset"), request._request)
        return tus.answer(204, upload)

    @extend_schema(operation_id="delete_upload", request=None, responses={204: None}, parameters=[TUS], tags=["files"])
    def delete(self, request: Request, upload_id: str) -> Response:
        """Give it up; what came is deleted."""
        upload = access.get_upload(request.user, upload_id)
        tus.require_version(request)
        uploads.cancel(upload)
        return tus.answer(204)


class UploadContentView(APIView):
    """The signed address, where files are in a folder of this installation. The signature stands for who asked."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="put_upload",
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={204: None},
        parameters=[query("expires", "As given.", required=True), query("signature", "As given.", required=True)],
        tags=["files"],
    )
    def put(self, request: Request, upload_id: str) -> Response:
        """The bytes of an upload, once. Use the address as upload-url gave it."""
        given = request.query_params
        upload = uploads.check_signature(upload_id, expires=given.get("expires", ""), signature=given.get("signature", ""))
        uploads.receive(upload, request._request)
        return Response(status=204)


class UploadCompleteView(APIView):
    @extend_schema(operation_id="complete_upload", request=UploadDone, responses={201: UploadedFile}, tags=["files"])
    def post(self, request: Request, upload_id: str) -> Response:
        """Check what came and make it a file. 409 while bytes are missing, 422 if they are others than announced or cannot be read."""
        upload = access.get_upload(request.user, upload_id)
        done = parse_body(request, UploadDone) if request.body.strip() else UploadDone()
        kept = services.complete(request.user, upload, sha256=bytes.fromhex(done.sha256) if done.sha256 else None)
        file = read_answer(request, kept) if isinstance(kept, File) else file_row(with_state_of(kept))
        return Response(UploadedFile(upload_id=upload.id, target=upload.target, file=file).model_dump(mode="json"), status=201)


def announced_by(request: Request) -> services.Announced:
    """What the headers of a tus creation say of the file."""
    said = tus.metadata(request)
    size = tus.number(request, "Upload-Length")
    fields = {"file_name": said.get("filename") or said.get("name") or "", "size": size, "media_type": said.get("filetype", "")}
    checked = validate(fields | {"sha256": said.get("sha256") or "0" * 64}, UploadWanted, what="The upload")
    return services.Announced(checked.file_name, size, bytes.fromhex(said["sha256"]) if said.get("sha256") else None, checked.media_type)


def _announce(request: Request, announced: services.Announced, channel: str, fields: Mapping[str, str], *, is_resumable: bool) -> Upload:
    found = find_channel(request.user, channel)
    said = said_of(fields, file_name=announced.file_name, media_type=announced.media_type)
    return services.announce_to_channel(request.user, found, announced, said=said, is_resumable=is_resumable)


def _resumable(request: Request, upload_id: str) -> Upload:
    upload = access.get_upload(request.user, upload_id)
    tus.require_version(request)
    if not upload.is_resumable:
        raise InvalidInput("This upload has a signed address, and comes in one piece.")
    uploads.require_open(upload)
    return upload


def _begun(request: Request, upload: Upload) -> Response:
    return tus.answer(201, upload, Location=request.build_absolute_uri(f"/api/v1/files/uploads/{upload.id}"))


def _url_answer(request: Request, upload: Upload) -> HttpResponse:
    route = f"/api/v1/files/uploads/{upload.id}"
    signed = uploads.signed_url(upload, route=request.build_absolute_uri(f"{route}/content"))
    answer = UploadUrl(
        upload_id=upload.id,
        upload_url=signed.url,
        method=signed.method,
        headers=dict(signed.headers),
        expires_at=signed.expires_at,
        complete_url=request.build_absolute_uri(f"{route}/complete"),
    )
    return Response(answer.model_dump(mode="json"), status=201)
