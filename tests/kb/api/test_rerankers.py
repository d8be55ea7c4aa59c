"""The registry of rerankers over REST, with a real local server for the test call."""

import pytest

from kb import services, versioning
from kb.models import Reranker
from tests.servers.rerank_server import KEY, Answer, RerankServer

pytestmark = pytest.mark.django_db
ALL = "/api/v1/rerankers"
REMOTE = {"name": "best", "provider": "cohere", "model": "rerank-v3.5", "credential": "VENDOR"}


@pytest.fixture
def secret(organization):
    return services.set_secret(organization=organization, name="VENDOR", value=KEY)


@pytest.fixture
def admin(client_of, carol, secret):
    return client_of(carol)


@pytest.fixture
def operator(client_of, admin_user, organization):
    return client_of(admin_user)


def test_registering_reading_changing_and_forgetting(admin):
    made = admin.post(ALL, REMOTE, format="json")
    assert made.status_code == 201, made.content
    body = made.json()
    assert (body["scope"], body["timeout"], body["endpoint"], body["parameters"]) == ("organization", 2.0, None, {})
    assert admin.get(made["Location"]).json() == body
    assert [item["name"] for item in admin.get(ALL).json()["items"]] == ["best"]
    assert admin.post(ALL, REMOTE, format="json").status_code == 409
    changed = admin.put(made["Location"], {**REMOTE, "name": "other", "timeout": 1, "parameters": {"scores": "logits"}}, format="json")
    assert (changed.status_code, changed.json()["name"], changed.json()["timeout"]) == (200, "other", 1.0)
    assert admin.delete(made["Location"]).status_code == 204
    assert not Reranker.objects.exists()


def test_who_registers_what(client, admin, operator, client_of, mallory, key_client):
    assert client.post(ALL, REMOTE, format="json").status_code == 403
    assert admin.post(f"{ALL}?scope=installation", REMOTE, format="json").status_code == 403
    services.set_secret(organization=None, name="VENDOR", value=KEY)
    common = operator.post(f"{ALL}?scope=installation", {**REMOTE, "name": "common"}, format="json")
    assert common.json()["scope"] == "installation"
    own = admin.post(ALL, REMOTE, format="json")
    assert [item["name"] for item in client_of(mallory).get(ALL).json()["items"]] == ["common"]
    assert client_of(mallory).get(own["Location"]).status_code == 404
    assert client.get(own["Location"]).status_code == 200
    for method in ("put", "delete"):
        assert getattr(admin, method)(common["Location"], REMOTE, format="json").status_code == 403
    assert admin.post(f"{common['Location']}/test").status_code == 403


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"provider": "nobody"}, "provider"),
        ({"provider": "cross-encoder", "model": "/etc", "credential": None}, "provider"),
        ({"endpoint": "http://127.0.0.1:1/v1"}, "endpoint"),
        ({"credential": None}, "credential"),
        ({"credential": "sk-abcdefghijklmnopqrstuvwxyz"}, "credential"),
        ({"parameters": {"base_url": "https://example.com"}}, "parameters"),
        ({"parameters": {"truncation": True}}, "parameters"),
        ({"parameters": {"max_documents": 0}}, "parameters"),
        ({"parameters": {"scores": "percent"}}, "parameters"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": 31}, "timeout"),
        ({"colour": 1}, "colour"),
    ],
)
def test_what_does_not_hold_is_refused_by_path(admin, values, path):
    answer = admin.post(ALL, {**REMOTE, **values}, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"].startswith(path)
    assert not Reranker.objects.exists()


def test_a_secret_of_the_installation_does_not_go_where_an_organization_says(admin, secret):
    secret.delete()
    services.set_secret(organization=None, name="VENDOR", value=KEY)
    assert admin.post(ALL, REMOTE, format="json").status_code == 400


def test_one_that_a_knowledge_base_names_stays(admin, actor, knowledge_base):
    url = admin.post(ALL, REMOTE, format="json")["Location"]
    document = {**knowledge_base.current.document, "retrieval": {"rerank": "best"}}
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    assert admin.delete(url).json()["used_by"] == ["Handbooks"]
    assert admin.put(url, {**REMOTE, "name": "another"}, format="json").status_code == 409
    assert admin.put(url, {**REMOTE, "model": "rerank-v4.0-pro"}, format="json").status_code == 200


def test_another_organization_s_reranker_cannot_be_named(admin, mallory, client_of, other_organization):
    services.set_secret(organization=other_organization, name="VENDOR", value=KEY)
    stranger = client_of(mallory)
    assert stranger.post(ALL, REMOTE, format="json").status_code == 201
    refused = admin.post("/api/v1/knowledge-bases", {"name": "Own", "retrieval": {"rerank": "best"}}, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "retrieval.rerank")


def test_the_test_call_goes_to_the_real_provider(operator, organization):
    services.set_secret(organization=None, name="VENDOR", value=KEY)
    with RerankServer() as server:
        remote = {**REMOTE, "endpoint": server.endpoint("cohere")}
        url = operator.post(f"{ALL}?scope=installation", remote, format="json")["Location"]
        body = operator.post(f"{url}/test").json()
        assert 0 <= body["irrelevant"] < body["relevant"] <= 1
        assert len(server.requests[0]["body"]["documents"]) == 2
        server.answer_next(Answer(status=401))
        assert operator.post(f"{url}/test").status_code == 502
