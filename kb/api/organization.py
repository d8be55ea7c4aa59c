"""An organization by its administrators: members, API keys and secrets."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import ORGANIZATION, PAGE_PARAMETERS, Paged, query
from config.paging import limit_of, take_page
from kb import access, listing, services
from kb.access import Level
from kb.api import shapes
from kb.api.grants import number_of
from kb.api.parameters import one_of
from kb.api.shapes import answer, answer_page
from kb.models import ApiKey

SCOPES = ("organization", "installation")
SCOPE = query("scope", "`installation`: for every organization, by an operator with a session.", enum=SCOPES, default="organization")


class OneOrganization(APIView):
    @extend_schema(parameters=[ORGANIZATION], responses=shapes.OrganizationAnswer)
    def get(self, request: Request) -> Response:
        """Your organization, and what you are in it."""
        actor = request.user
        role = {Level.VIEW: "viewer", Level.EDIT: "editor", Level.ADMIN: "admin"}[actor.level]
        return answer(shapes.OrganizationAnswer(id=actor.organization.id, name=actor.organization.name, role=role))


class Members(APIView):
    @extend_schema(parameters=PAGE_PARAMETERS, responses=Paged[shapes.MemberAnswer])
    def get(self, request: Request) -> Response:
        """The members, newest first."""
        rows = listing.members(request.user)
        return answer_page(take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request)), shapes.MemberAnswer)


class OneMember(APIView):
    @extend_schema(request=shapes.MemberInput, responses=shapes.MemberAnswer)
    def put(self, request: Request, user_id: str) -> Response:
        """Change a member's role. Accounts are made, and put into organizations, by an operator in the admin."""
        access.require(request.user, Level.ADMIN)
        body = parse_body(request, shapes.MemberInput)
        member = services.change_member(request.user.organization, user_id=number_of(user_id), role=body.role)
        return answer(shapes.MemberAnswer.model_validate(member))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, user_id: str) -> Response:
        """Take a member out of the organization, grants included. Their API keys stay, as a viewer's: revoke those that are theirs."""
        access.require(request.user, Level.ADMIN)
        services.remove_member(request.user.organization, user_id=number_of(user_id))
        return Response(status=204)


class ApiKeys(APIView):
    @extend_schema(parameters=PAGE_PARAMETERS, responses=Paged[shapes.ApiKeyAnswer])
    def get(self, request: Request) -> Response:
        """The keys of the organization, newest first, revoked ones included."""
        rows = access.own_rows(request.user, ApiKey, Level.ADMIN)
        return answer_page(take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request)), shapes.ApiKeyAnswer)

    @extend_schema(request=shapes.ApiKeyInput, responses={201: shapes.NewApiKey})
    def post(self, request: Request) -> Response:
        """Make a key. Its value is answered this once, so an Idempotency-Key changes nothing here: the value is kept nowhere."""
        access.require(request.user, Level.ADMIN)
        body = parse_body(request, shapes.ApiKeyInput)
        actor = request.user
        key, value = services.create_api_key(actor.organization, created_by=actor.user, made_with=actor.api_key, **body.model_dump())
        shown = shapes.ApiKeyAnswer.model_validate(key).model_dump()
        return answer(shapes.NewApiKey(**shown, value=value), status=201, headers={"Location": f"/api/v1/api-keys/{key.id}"})


class OneApiKey(APIView):
    @extend_schema(responses=shapes.ApiKeyAnswer)
    def get(self, request: Request, key_id: str) -> Response:
        """One key, without its value."""
        return answer(shapes.ApiKeyAnswer.model_validate(access.get_own_row(request.user, ApiKey, key_id, Level.ADMIN)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key_id: str) -> Response:
        """Revoke a key, at once and for good."""
        services.revoke_api_key(access.get_own_row(request.user, ApiKey, key_id, Level.ADMIN))
        return Response(status=204)


class Secrets(APIView):
    @extend_schema(parameters=[*PAGE_PARAMETERS, SCOPE], responses=Paged[shapes.SecretAnswer])
    def get(self, request: Request) -> Response:
        """Names of the secrets that documents may refer to as `${secret:NAME}`. Values are never answered."""
        rows = listing.secrets(request.user, installation=one_of(request, "scope", SCOPES) == "installation")
        return answer_page(take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request)), shapes.SecretAnswer)

    @extend_schema(parameters=[SCOPE], request=shapes.SecretInput, responses={201: shapes.SecretAnswer})
    def post(self, request: Request) -> Response:
        """Store a secret, or replace its value."""
        installation = one_of(request, "scope", SCOPES) == "installation"
        if installation:
            access.require_operator(request.user)
        access.require(request.user, Level.ADMIN)
        body = parse_body(request, shapes.SecretInput)
        secret = services.set_secret(organization=None if installation else request.user.organization, name=body.name, value=body.value)
        return answer(shapes.SecretAnswer.model_validate(secret), status=201)


class OneSecret(APIView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, secret_id: str) -> Response:
        """Forget a secret. What refers to it fails from now on, with a sentence that names it."""
        services.delete_secret(request.user, secret_id)
        return Response(status=204)
