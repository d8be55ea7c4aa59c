"""Configurations as files: export of a version, import as new knowledge bases."""

from typing import Any, Literal
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from pydantic import Field
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.errors import TooLarge
from config.openapi import IDEMPOTENCY_KEY, query
from kb import access, transfers
from kb.access import Level
from kb.api.idempotency import idempotent
from kb.api.parameters import flag, one_of, pairs, whole_number
from kb.api.shapes import Shape, answer
from kb.bundles.archives import MAX_PACKED

FORMS = tuple(transfers.MEDIA_TYPES)
READ = ("application/yaml", "application/zip", "application/json", "application/x-yaml", "text/yaml", "application/octet-stream")


class BundleNote(Shape):
    """Something that was converted (`new`) or left out."""

    path: str
    message: str
    old: Any = None
    new: Any = None


class Imported(Shape):
    action: Literal["created"]
    name: str
    where: str = Field(description="Which file or document of the bundle.")
    knowledge_base_id: UUID | None = Field(description="Null in a dry run.")
    version: int
    notes: list[BundleNote]
    secrets: list[str] = Field(description="Names of the secrets that it refers to.")
    missing_secrets: list[str] = Field(description="Those that have to be stored before it works.")


class ImportAnswer(Shape):
    dry_run: bool
    knowledge_bases: list[Imported]
    notes: list[BundleNote] = Field(description="What else the bundle held.")


class AnyAccept(BaseContentNegotiation):
    """`?format=` is the bundle's here, and problems are JSON whatever is accepted."""

    def select_renderer(self, request: Request, renderers: list[Any], format_suffix: str | None = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class Export(APIView):
    content_negotiation_class = AnyAccept

    @extend_schema(
        operation_id="knowledge_bases_export",
        parameters=[
            query("format", "yaml or zip.", enum=FORMS, default=FORMS[0]),
            query("version", "The number of a version; the current one without.", int),
        ],
        responses={(200, "application/yaml"): OpenApiTypes.STR, (200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, kb_id: str) -> HttpResponse:
        """The configuration as a file, without documents, files and values of secrets."""
        found = access.get_knowledge_base(request.user, kb_id)
        form, number = one_of(request, "format", FORMS), whole_number(request, "version")
        name, content = transfers.bundle_file([transfers.export(found, number=number)], form=form)
        return download(name, content, form=form)


class Import(APIView):
    @extend_schema(
        operation_id="knowledge_bases_import",
        parameters=[
            IDEMPOTENCY_KEY,
            query("dry_run", "Say what would happen, and make nothing.", bool, default=False),
            query("name", "Another name, for a bundle with one knowledge base."),
            query("rename", "Add a number to names that are taken, instead of 409.", bool, default=False),
            query("model", "`OLD=NEW`: the name of an embedding model in the bundle and here. May be repeated.", many=True),
        ],
        request={media_type: OpenApiTypes.STR if media_type != "application/zip" else OpenApiTypes.BINARY for media_type in READ[:3]},
        responses={201: ImportAnswer, 200: ImportAnswer},
    )
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Make knowledge bases of a bundle (YAML, ZIP or JSON), all or none: with new ids and empty upload sources."""
        access.require(request.user, Level.EDIT)
        entries, notes = transfers.read_entries(_body(request), name="The bundle")
        dry_run = flag(request, "dry_run")
        outcomes = transfers.import_entries(
            request.user,
            entries,
            name=request.query_params.get("name", ""),
            rename=flag(request, "rename"),
            models=pairs(request, "model"),
            dry_run=dry_run,
        )
        shape = ImportAnswer.model_validate({"dry_run": dry_run, "knowledge_bases": outcomes, "notes": notes})
        return answer(shape, status=200 if dry_run else 201)


def download(name: str, content: bytes, *, form: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return HttpResponse(content, content_type=transfers.MEDIA_TYPES[form], headers=headers)


def _body(request: Request) -> bytes:
    """What the content is, it says itself; the media type only has to be one of those that it may be."""
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    if media_type and media_type not in READ:
        raise UnsupportedMediaType(media_type, detail=f"The body is {media_type[:80]}; send {', '.join(READ[:3])}.")
    if len(request.body) > MAX_PACKED:
        raise TooLarge(f"The bundle has {len(request.body):,} bytes; at most {MAX_PACKED:,} are taken. Split it.", max_bytes=MAX_PACKED)
    return request.body
