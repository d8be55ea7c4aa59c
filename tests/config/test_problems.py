import json

import pytest
import redis
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import OperationalError
from django.http import Http404
from django.test import Client, RequestFactory, override_settings
from django.urls import path
from psycopg_pool import PoolTimeout
from pydantic import BaseModel
from rest_framework import exceptions as drf
from rest_framework import serializers
from rest_framework.views import APIView

from config import problems
from config.body import parse_body
from config.errors import Conflict, InvalidInput, LecternError, NotAuthenticated, NotFound, StaleVersion, TooManyRequests, Unavailable

raised: list[Exception] = []


class Count(BaseModel):
    n: int


class Raising(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request):
        raise raised.pop()

    def post(self, request):
        parse_body(request, Count)


def page(request):
    raise raised.pop()


urlpatterns = [path("api/v1/thing", Raising.as_view()), path("api/v1/plain", page), path("page", Raising.as_view()), path("admin/", page)]
handler404 = problems.handler404
handler500 = problems.handler500
handler400 = problems.handler400
handler403 = problems.handler403


@pytest.fixture(autouse=True)
def routes():
    with override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["testserver"], DEBUG=False, MIDDLEWARE=[]):
        yield
    raised.clear()


def answer(error, **arguments):
    raised.append(error)
    response = Client(raise_request_exception=False).get("/api/v1/thing", **arguments)
    assert response["content-type"] == "application/problem+json"
    document = json.loads(response.content)
    assert document["status"] == response.status_code
    assert set(document) >= {"type", "title", "status", "code", "detail"}
    return response, document


class Form(serializers.Serializer):
    name = serializers.CharField()
    tags = serializers.ListField(child=serializers.IntegerField())


def form_error():
    form = Form(data={"tags": [1, "x"]})
    form.is_valid()
    return drf.ValidationError(form.errors)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidInput("no"), 400, "invalid_input"),
        (Conflict("no"), 409, "conflict"),
        (StaleVersion(expected=1, current=2), 409, "stale_version"),
        (Unavailable("no"), 503, "unavailable"),
        (LecternError("no"), 500, "error"),
        (drf.NotAuthenticated(), 401, "not_authenticated"),
        (drf.AuthenticationFailed("This key has expired. Make another."), 401, "not_authenticated"),
        (drf.PermissionDenied(), 403, "forbidden"),
        (PermissionDenied(), 403, "forbidden"),
        (drf.NotFound("secret detail"), 404, "not_found"),
        (Http404("secret detail"), 404, "not_found"),
        (drf.MethodNotAllowed("GET"), 405, "method_not_allowed"),
        (drf.UnsupportedMediaType("text/csv"), 415, "unsupported_media_type"),
        (drf.Throttled(3), 429, "too_many_requests"),
        (drf.ParseError("no"), 400, "invalid_input"),
        (DjangoValidationError({"name": ["taken"]}), 400, "invalid_input"),
        (RequestDataTooBig(), 413, "too_large"),
        (SuspiciousOperation("x"), 400, "invalid_input"),
        (OperationalError("connection to 10.0.0.1 refused"), 503, "unavailable"),
        (PoolTimeout("x"), 503, "unavailable"),
        (redis.ConnectionError("10.0.0.1"), 503, "unavailable"),
        (RuntimeError("secret detail"), 500, "error"),
    ],
)
def test_every_error_is_a_problem_document(error, status, code):
    response, document = answer(error)
    assert (response.status_code, document["code"]) == (status, code)
    assert "secret detail" not in response.content.decode()
    assert "10.0.0.1" not in response.content.decode()
    assert len(document["detail"]) > 1


def test_absent_foreign_and_unrouted_are_the_same_bytes():
    found = [answer(error)[0].content for error in (NotFound(), Http404("a"), drf.NotFound())]
    found.append(Client().get("/api/v1/nowhere").content)
    assert len(set(found)) == 1


def test_extra_members_are_beside_the_standard_ones_and_never_replace_them():
    _, document = answer(InvalidInput("no", run_id="r1", status="x", detail="y", nothing=None))
    assert (document["run_id"], document["status"], document["detail"]) == ("r1", 400, "no")
    assert "nothing" not in document


def test_headers_that_belong_to_a_status():
    assert answer(NotAuthenticated("no"))[0]["www-authenticate"].startswith("Bearer")
    assert answer(TooManyRequests("no", retry_after=30))[0]["retry-after"] == "30"
    assert answer(OperationalError("x"))[0]["retry-after"] == "2"


def test_serializer_errors_are_listed_by_path():
    _, document = answer(form_error())
    assert {found["path"] for found in document["errors"]} == {"name", "tags.1"}


def test_pydantic_errors_are_listed_by_path():
    response = Client().post("/api/v1/thing", b'{"n": "x", "m": 1}', content_type="application/json")
    assert response.status_code == 400
    assert {found["path"] for found in response.json()["errors"]} == {"n", "m"}


def test_a_form_as_body_is_415():
    response = Client().post("/api/v1/thing", "n=1", content_type="application/x-www-form-urlencoded")
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


def test_what_django_refuses_itself_is_a_problem_too():
    factory = RequestFactory()
    for handler, status in ((problems.handler400, 400), (problems.handler403, 403), (problems.handler404, 404)):
        found = handler(factory.get("/api/v1/x"), SuspiciousOperation("secret"))
        assert (found.status_code, found["content-type"]) == (status, "application/problem+json")
        assert handler(factory.get("/page"), SuspiciousOperation("secret"))["content-type"].startswith("text/html")
    assert problems.handler500(factory.get("/page")).status_code == 500


@pytest.mark.parametrize("error", [OperationalError("connection refused"), PoolTimeout("full"), redis.ConnectionError("refused")])
def test_a_browser_is_told_of_a_service_that_is_away_on_a_plain_page(error):
    raised.append(error)
    answer = Client(raise_request_exception=False).get("/admin/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert answer["Content-Type"].startswith("text/html")
    assert "does not answer" in answer.content.decode()


def test_outside_of_the_rest_framework_it_is_a_problem_too():
    raised.append(OperationalError("connection refused"))
    answer = Client(raise_request_exception=False).get("/api/v1/plain")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")


def test_a_fault_of_ours_stays_a_fault():
    raised.append(KeyError("x"))
    assert Client(raise_request_exception=False).get("/admin/").status_code == 500
