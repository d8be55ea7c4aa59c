"""Channels, their policies explained, and the services that policies may name."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import IDEMPOTENCY_KEY, PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from kb import access, bindings, channels
from kb.access import Level
from kb.api.idempotency import idempotent
from kb.api.organization import SCOPE, SCOPES
from kb.api.parameters import one_of
from kb.api.shapes import Shape, answer, answer_page
from kb.models import Channel, Source
from kb.schemas.families import family_of
from kb.schemas.merging import Merged
from kb.schemas.policy import PolicyDocument

ROUTE = "/api/v1/channels"
MAX_NAME = 300


class ChannelBody(Shape):
    name: str = Field(min_length=1, max_length=200, description="Unique in the organization.")
    knowledge_base_id: str = Field(description="Where its files answer; fixed.")
    description: str = Field(default="", max_length=10_000)
    policy: dict[str, Any] = Field(
        default_factory=dict, description="Its layer of the ingest policy; only what it says. GET …/policy shows the whole."
    )
    is_default: bool = Field(default=False, description="Takes the files that name no channel; the flag moves here.")


class ChannelChange(ChannelBody):
    knowledge_base_id: str | None = Field(default=None, description="Where its files answer; fixed, so it may be left out.")


class ChannelAnswer(Shape):
    id: UUID
    name: str
    knowledge_base_id: UUID
    source_id: UUID = Field(description="Its internal source: a run of it takes every file in again.")
    description: str
    policy: dict[str, Any]
    is_default: bool
    created_at: datetime
    updated_at: datetime


class PolicyAnswer(BaseModel):
    """`policy` is whole; `origins` maps each path of it to who said so: default, family, knowledge_base, channel or upload."""

    family: str
    policy: dict[str, Any]
    origins: dict[str, str]


class ExplainBody(Shape):
    """A file that might come."""

    media_type: str = Field(default="", max_length=200)
    file_name: str = Field(default="", max_length=MAX_NAME)
    policy: dict[str, Any] = Field(default_factory=dict, description="What its upload would say.")


class BindingBody(Shape):
    purpose: Literal["transcription", "vision"]
    endpoint: str = Field(min_length=1, max_length=2000, description="Address of the service, to the letter as policies name it.")
    credential: str = Field(default="", max_length=100, description="Name of the secret that may be sent there; empty for none.")
    model: str = Field(default="", max_length=300, description="Used where a policy names none.")
    is_default: bool = Field(default=False, description="Serves every file whose policy names no service; one for each purpose.")


class BindingAnswer(Shape):
    id: UUID
    purpose: str
    endpoint: str
    credential: str
    model: str
    is_default: bool
    scope: Literal["organization", "installation"]
    created_at: datetime


def policy_answer(merged: Merged) -> Response:
    return Response(PolicyAnswer(family=merged.family, policy=merged.values, origins=merged.origins).model_dump(mode="json"))


class Channels(APIView):
    @extend_schema(parameters=PAGE_PARAMETERS, responses=Paged[ChannelAnswer], tags=["channels"])
    def get(self, request: Request) -> Response:
        """Channels into knowledge bases that you may see, newest first."""
        rows = access.rows(request.user, Channel).filter(source__state=Source.State.ACTIVE)
        return answer_page(take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request)), ChannelAnswer)

    @extend_schema(request=ChannelBody, responses={201: ChannelAnswer}, parameters=[IDEMPOTENCY_KEY], tags=["channels"])
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Make a channel into a knowledge base that you may edit."""
        made = channels.create_channel(request.user, wanted=channels.ChannelInput(**parse_body(request, ChannelBody).model_dump()))
        return answer(ChannelAnswer.model_validate(made), status=201, headers={"Location": f"{ROUTE}/{made.id}"})


class OneChannel(APIView):
    @extend_schema(responses=ChannelAnswer, tags=["channels"])
    def get(self, request: Request, channel_id: str) -> Response:
        return answer(ChannelAnswer.model_validate(channels.get_channel(request.user, channel_id)))

    @extend_schema(request=ChannelChange, responses=ChannelAnswer, tags=["channels"])
    def put(self, request: Request, channel_id: str) -> Response:
        """Replace what it says. Files that are there keep what was made of them until they are taken in again."""
        found = channels.get_channel(request.user, channel_id, Level.EDIT)
        said = parse_body(request, ChannelChange).model_dump()
        wanted = channels.ChannelInput(**{**said, "knowledge_base_id": said["knowledge_base_id"] or found.knowledge_base_id})
        return answer(ChannelAnswer.model_validate(channels.change_channel(request.user, found, wanted=wanted)))

    @extend_schema(responses={204: None}, tags=["channels"])
    def delete(self, request: Request, channel_id: str) -> Response:
        """It goes with every file of it; nothing of them answers from now on."""
        channels.delete_channel(channels.get_channel(request.user, channel_id, Level.EDIT))
        return Response(status=204)


class ChannelPolicy(APIView):
    @extend_schema(
        operation_id="read_channel_policy",
        responses=PolicyAnswer,
        parameters=[query("media_type", "Of a file that might come."), query("file_name", "Of a file that might come.")],
        tags=["channels"],
    )
    def get(self, request: Request, channel_id: str) -> Response:
        """The merged policy of a file of this type or name, and where each key comes from."""
        channel = channels.get_channel(request.user, channel_id)
        named = {"media_type": request.query_params.get("media_type", ""), "name": request.query_params.get("file_name", "")}
        return policy_answer(channels.explain_policy(channel, family=family_of(**named)))

    @extend_schema(operation_id="explain_channel_policy", request=ExplainBody, responses={200: PolicyAnswer}, tags=["channels"])
    def post(self, request: Request, channel_id: str) -> Response:
        """The same with what an upload would say; what would be refused there is refused here."""
        channel = channels.get_channel(request.user, channel_id)
        body = parse_body(request, ExplainBody)
        upload = channels.load_upload_policy(body.policy)
        family = family_of(media_type=body.media_type, name=body.file_name)
        return policy_answer(channels.explain_policy(channel, family=family, upload=upload))


class PolicySchema(APIView):
    @extend_schema(responses={200: dict[str, Any]}, tags=["channels"])
    def get(self, request: Request) -> Response:
        """JSON Schema of an ingest policy."""
        return Response(PolicyDocument.model_json_schema())


class ServiceBindings(APIView):
    @extend_schema(parameters=PAGE_PARAMETERS, responses=Paged[BindingAnswer], tags=["channels"])
    def get(self, request: Request) -> Response:
        """Pairs of an endpoint and a secret that policies may name: your organization's and the installation's."""
        rows = access.service_bindings(request.user)
        page = take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request))
        items = [_binding(row).model_dump(mode="json") for row in page.items]
        return Response({"items": items, "next_cursor": page.next_cursor})

    @extend_schema(request=BindingBody, parameters=[SCOPE, IDEMPOTENCY_KEY], responses={201: BindingAnswer}, tags=["channels"])
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Bind a secret to the one address that it may be sent to (administrators; operators for everybody)."""
        installation = one_of(request, "scope", SCOPES) == "installation"
        document = parse_body(request, BindingBody).model_dump()
        made = bindings.bind_service(request.user, document=document, installation=installation)
        return answer(_binding(made), status=201, headers={"Location": f"/api/v1/service-bindings/{made.id}"})


class OneServiceBinding(APIView):
    @extend_schema(responses=BindingAnswer, tags=["channels"])
    def get(self, request: Request, binding_id: str) -> Response:
        return answer(_binding(bindings.get_binding(request.user, binding_id)))

    @extend_schema(request=BindingBody, responses=BindingAnswer, tags=["channels"])
    def put(self, request: Request, binding_id: str) -> Response:
        """What names the old pair is refused from now on."""
        found = bindings.get_binding(request.user, binding_id, change=True)
        return answer(_binding(bindings.change_binding(found, document=parse_body(request, BindingBody).model_dump())))

    @extend_schema(responses={204: None}, tags=["channels"])
    def delete(self, request: Request, binding_id: str) -> Response:
        bindings.delete_binding(bindings.get_binding(request.user, binding_id, change=True))
        return Response(status=204)


def _binding(row: Any) -> BindingAnswer:
    scope = "installation" if row.organization_id is None else "organization"
    names = ("id", "purpose", "endpoint", "credential", "model", "is_default", "created_at")
    return BindingAnswer(scope=scope, **{name: getattr(row, name) for name in names})
