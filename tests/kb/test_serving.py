"""Whom a request serves: raw SQL in views that forgot every condition, behind the real authentication."""

import json
from uuid import UUID

import pytest
from django.db import Error, connection, transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.test import Client
from django.urls import include, path
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient
from rest_framework.views import APIView

from config.tenancy import everyone, nobody, served
from kb import access, services
from tests.raw_sql import seen

pytestmark = pytest.mark.django_db


class Looking(APIView):
    """A view that forgot every condition."""

    def get(self, request: Request) -> Response:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_user, rolbypassrls FROM pg_roles WHERE rolname = current_user")
            told = {"role": cursor.fetchone(), "alone": seen()}
        with transaction.atomic():
            return Response({**told, "in a transaction": seen()})

    def post(self, request: Request) -> Response:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE kb_source SET organization_id = %s", [UUID(request.data["organization"])])
        return Response({})


class Open(Looking):
    authentication_classes = ()
    permission_classes = (AllowAny,)


def stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(json.dumps(seen()) for _ in range(1))


def failing(request: HttpRequest) -> None:
    with everyone():
        actor = access.actor_for_user(request.user)
    access.require_operator(actor)
    raise ZeroDivisionError


urlpatterns = [
    path("looking", Looking.as_view()),
    path("open", Open.as_view()),
    path("stream", stream),
    path("failing", failing),
    path("", include("config.urls")),
]


@pytest.fixture
def acme_key(organization) -> str:
    return services.create_api_key(organization, name="k", role="admin")[1]


@pytest.mark.urls(__name__)
def test_raw_sql_in_a_request_sees_whom_it_serves(sources, organization, other_organization, acme_key, alice):
    own = [str(organization.id)]
    by_key, by_session = APIClient(), APIClient()
    by_key.credentials(HTTP_AUTHORIZATION=f"Bearer {acme_key}")
    by_session.force_login(alice)
    for client in (by_key, by_session):
        told = client.get("/looking").json()
        assert told["alone"]["kb_source"] == told["alone"]["kb_organization"] == own
        assert told["in a transaction"] == told["alone"]
        assert told["role"] == ["lectern_app", False]
    with pytest.raises(Error, match="violates row-level security policy"), transaction.atomic():
        by_key.post("/looking", {"organization": str(other_organization.id)}, format="json")
    assert not any(APIClient().get("/open").json()["alone"].values())
    assert APIClient().get("/looking").status_code == 401
    assert served() == "*"  # a request leaves nothing behind, and inherits nothing


@pytest.mark.urls(__name__)
def test_what_is_read_when_the_request_is_over_serves_nobody(sources, carol):
    client = Client()
    client.force_login(carol)
    response = client.get("/stream")
    with nobody():
        assert not any(json.loads(response.getvalue()).values())
    carol.is_superuser = True
    carol.save()
    with nobody():
        with pytest.raises(ZeroDivisionError):
            client.get("/failing")
        assert served() == ""


def test_pages_of_the_admin_serve_memberships_and_operators_everyone(sources, mallory, carol):
    mallory.is_staff = carol.is_staff = True
    mallory.save()
    carol.is_superuser = True
    carol.save()
    for user, visible, hidden in ((mallory, ["Rival"], "Acme"), (carol, ["Rival", "Acme"], "Nobody's")):
        client = Client()
        client.force_login(user)
        text = client.get("/admin/kb/source/").content.decode()
        assert all(name in text for name in visible)
        assert hidden not in text
