"""Idempotency keys: one effect and one answer, however often a request is sent."""

import threading
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.test import RequestFactory
from django.test.client import encode_multipart
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request

from kb import idempotency, services
from kb.api.idempotency import body_digest
from kb.models import IdempotencyKey, KnowledgeBase

ALL = "/api/v1/knowledge-bases"
KEY = {"Idempotency-Key": "3f0c"}


def post(client, name="Notes", *, path=ALL, headers=KEY):
    return client.post(path, {"name": name}, format="json", headers=headers)


@pytest.mark.django_db
def test_the_first_answer_comes_again_byte_for_byte(client, hashing_model):
    first, second = post(client), post(client)
    assert (first.status_code, second.status_code) == (201, 201)
    assert (first.content, first["Location"], first["ETag"]) == (second.content, second["Location"], second["ETag"])
    assert (first.has_header("Idempotent-Replayed"), second["Idempotent-Replayed"]) == (False, "true")
    assert KnowledgeBase.objects.count() == 1


@pytest.mark.django_db
def test_another_body_or_query_is_refused(client, hashing_model):
    post(client)
    answer = post(client, "Others")
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_mismatch")
    assert post(client, path=f"{ALL}?comment=x").status_code == 422
    assert KnowledgeBase.objects.count() == 1


@pytest.mark.django_db
def test_keys_are_told_apart_by_route_organization_and_person(client, client_of, hashing_model, knowledge_base, mallory, carol):
    assert post(client).status_code == 201
    assert post(client, "Copy", path=f"{ALL}/{knowledge_base.id}/duplicate").status_code == 201
    assert post(client_of(mallory)).status_code == 201
    assert post(client_of(carol)).status_code == 409  # her own request, and the name is taken


@pytest.mark.django_db
def test_only_successes_are_kept(client, hashing_model, actor):
    assert post(client, "").status_code == 400
    assert IdempotencyKey.objects.count() == 0
    assert post(client, "Notes").status_code == 201


@pytest.mark.django_db
def test_a_key_under_way_waits_and_is_freed_after_a_minute(client, hashing_model, alice, organization):
    post(client)
    KnowledgeBase.objects.all().update(state="deleting")
    IdempotencyKey.objects.update(status=None, response=None)
    waiting = post(client)
    assert (waiting.status_code, waiting["Retry-After"]) == (409, "1")
    row = IdempotencyKey.objects.get()
    IdempotencyKey.objects.update(created_at=row.created_at - timedelta(minutes=2))
    assert post(client).status_code == 201
    assert IdempotencyKey.objects.get().status == 201


@pytest.mark.django_db
def test_what_was_taken_over_cannot_keep_its_answer(actor):
    late = idempotency.claim(actor, key="k", route="r", body_digest=b"x")
    IdempotencyKey.objects.update(created_at=late.row.created_at - timedelta(minutes=2))
    late.row.created_at -= timedelta(minutes=2)
    idempotency.claim(actor, key="k", route="r", body_digest=b"x")
    with pytest.raises(idempotency.Conflict):
        late.keep(idempotency.Answer(200, "{}", {}))
    late.release()
    assert IdempotencyKey.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "é"])
def test_a_key_that_cannot_be_one(client, hashing_model, key):
    assert post(client, headers={"Idempotency-Key": key}).status_code == 400


@pytest.mark.django_db
def test_the_value_of_an_api_key_is_not_kept(client_of, carol):
    answer = client_of(carol).post("/api/v1/api-keys", {"name": "bot"}, format="json", headers=KEY)
    assert answer.status_code == 201
    assert IdempotencyKey.objects.count() == 0


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_of_requests_at_once_one_does_the_work(client_of, hashing_model, alice):
    answers = []

    def send() -> None:
        answers.append(post(client_of(alice)))
        connections.close_all()

    clients = [threading.Thread(target=send) for _ in range(6)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert KnowledgeBase.objects.filter(organization=services.Organization.objects.get(name="Acme")).count() == 1
    assert post(client_of(alice))["Idempotent-Replayed"] == "true"


def test_the_digest_of_a_form_does_not_know_its_boundary():
    def digest(content: bytes, boundary: str) -> bytes:
        file = SimpleUploadedFile("a.txt", content, content_type="text/plain")
        body = encode_multipart(boundary, {"field": "value", "file": file})
        request = RequestFactory().post("/x", body, content_type=f"multipart/form-data; boundary={boundary}")
        return body_digest(Request(request, parsers=[MultiPartParser()]))

    assert digest(b"one", "AaB03x") == digest(b"one", "other")
    assert digest(b"one", "AaB03x") != digest(b"two", "AaB03x")
