"""Direct ingestion: a text in, a durable status out."""

import codecs
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.errors import InvalidInput
from config.openapi import IDEMPOTENCY_KEY, query
from ingestion.api.parameters import flag_of
from ingestion.models import IngestionRun
from ingestion.services import pushes
from ingestion.services.ingestions import status_of
from kb import access
from kb.access import Level
from kb.api.idempotency import idempotent
from kb.models import KnowledgeBase, Source

# Python's own codecs that are no charset of any text.
_NO_CHARSETS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"})


class IngestText(BaseModel):
    """A text to take in; as JSON, or as a text/plain body with the other keys in the query."""

    text: str
    document_name: str | None = Field(default=None, description="Absent: `unnamed`, never replaceable. At most 300 characters.")
    replace: bool = Field(default=False, description="Take the place of the document of this name; it answers until the new one does.")
    metadata: dict[str, str | int | float | bool | list[str] | None] = Field(default_factory=dict, description="Kept with the document.")


class IngestionStarted(BaseModel):
    ingestion_id: UUID
    knowledge_base_id: UUID
    document_id: UUID
    document_name: str
    status: Literal["pending"] = "pending"


class Ingestion(BaseModel):
    """How far a text has come. The status is durable: it is there for as long as the knowledge base."""

    ingestion_id: UUID
    knowledge_base_id: UUID
    document_id: UUID | None = Field(description="Null once the document was deleted.")
    status: Literal["pending", "processing", "completed", "failed"]
    reason: str | None = Field(description="A code, when it failed.")
    error: str | None
    warning: str | None
    waiting_for: str | None = Field(description="What keeps it from going on, such as `no worker on queue embed`.")
    counters: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None


class IngestView(APIView):
    @extend_schema(
        operation_id="ingest_text",
        request={"application/json": IngestText, "text/plain": OpenApiTypes.STR},
        responses={202: IngestionStarted},
        parameters=[
            query("document_name", "Of a text/plain body. Absent: `unnamed`, never replaceable."),
            query("replace", "Of a text/plain body.", bool, default=False),
            IDEMPOTENCY_KEY,
        ],
        tags=["ingestion"],
    )
    @idempotent
    def post(self, request: Request, kb_id: str) -> Response:
        knowledge_base = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        wanted = read_text(request)
        run = pushes.ingest_text(
            knowledge_base,
            text=wanted.text,
            document_name=wanted.document_name,
            replace=wanted.replace,
            metadata=wanted.metadata,
            user=request.user.user,
        )
        return Response(_started(run, knowledge_base, wanted).model_dump(mode="json"), status=202)


class IngestionView(APIView):
    @extend_schema(operation_id="ingestion_status", responses={200: Ingestion}, tags=["ingestion"])
    def get(self, request: Request, kb_id: str, ingestion_id: str) -> Response:
        knowledge_base = access.get_knowledge_base(request.user, kb_id)
        pushed = {"kind": IngestionRun.Kind.PUSH, "source__kind": Source.Kind.DIRECT}
        run = access.get_row(request.user, IngestionRun, ingestion_id, knowledge_base=knowledge_base, **pushed)
        status = status_of(run)
        document = Ingestion(
            ingestion_id=run.id,
            knowledge_base_id=knowledge_base.id,
            document_id=status.document_id,
            status=status.status,
            reason=status.reason or None,
            error=status.error or None,
            warning=" ".join(status.warnings) or None,
            waiting_for=status.waiting_for or None,
            counters=dict(status.counters),
            created_at=run.created_at,
            finished_at=run.finished_at,
        )
        return Response(document.model_dump(mode="json"))


def _started(run: IngestionRun, knowledge_base: KnowledgeBase, wanted: IngestText) -> IngestionStarted:
    return IngestionStarted(
        ingestion_id=run.id,
        knowledge_base_id=knowledge_base.id,
        document_id=run.crawl_state["document"],
        document_name=(wanted.document_name or "").strip() or pushes.UNNAMED,
    )


def read_text(request: Request) -> IngestText:
    """The text of a JSON or plain body. A plain one is UTF-8 unless its type declares another charset."""
    content_type = (request.content_type or "").partition(";")[0].strip().lower()
    if content_type == "application/json" or content_type.endswith("+json"):
        return parse_body(request, IngestText)
    if content_type and not content_type.startswith("text/"):
        raise UnsupportedMediaType(content_type[:80], detail=f"The body is {content_type[:80]}; send text/plain or application/json.")
    return IngestText(
        text=_decoded(request),
        document_name=request.query_params.get("document_name"),
        replace=flag_of(request, "replace"),
    )


def _decoded(request: Request) -> str:
    charset = request._request.content_params.get("charset", "utf-8")
    try:
        known = codecs.lookup(charset).name
    except (LookupError, ValueError):
        known = ""
    if not known or known in _NO_CHARSETS:
        raise InvalidInput(f"The charset {charset[:40]!r} is not known. Send the text as UTF-8.")
    try:
        return request.body.decode("utf-8-sig" if known == "utf-8" else known)
    except UnicodeDecodeError as error:
        message = f"The body is not valid {charset[:40]} (byte {error.start}). Declare its charset in Content-Type, or send UTF-8."
        raise InvalidInput(message) from None
    except (LookupError, UnicodeError):  # a codec of bytes, such as zlib
        raise InvalidInput(f"The charset {charset[:40]!r} is not one of texts. Send the text as UTF-8.") from None
