"""The registry of embedding models over REST, with a real local server for the test call."""

import pytest

from kb import services
from kb.models import EmbeddingModel, EmbeddingSpace
from tests.servers.openai_server import Answer, ScriptedServer

pytestmark = pytest.mark.django_db
ALL = "/api/v1/embedding-models"
HASHING = {"name": "small", "provider": "hashing", "model": "hashing", "dimension": 256, "max_input_tokens": 256}


@pytest.fixture
def admin(client_of, carol):
    return client_of(carol)


@pytest.fixture
def operator(client_of, admin_user, organization):
    return client_of(admin_user)


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


def test_registering_makes_a_space_that_a_worker_attaches(admin, hashing_model):
    made = admin.post(ALL, HASHING, format="json")
    assert made.status_code == 201, made.content
    assert (made.json()["scope"], made.json()["is_ready"]) == ("organization", False)
    space = EmbeddingSpace.objects.get(embedding_model_id=made.json()["id"])
    assert (space.dimension, space.provisioned_at) == (256, None)
    assert admin.get(made["Location"]).json() == made.json()
    assert [item["name"] for item in admin.get(ALL).json()["items"]] == ["small", "hashing"]
    assert admin.post(ALL, HASHING, format="json").status_code == 409


def test_who_registers_what(client, admin, operator, hashing_model, client_of, mallory):
    assert client.post(ALL, HASHING, format="json").status_code == 403
    assert admin.post(f"{ALL}?scope=installation", HASHING, format="json").status_code == 403
    assert admin.put(f"{ALL}/{hashing_model.id}", HASHING, format="json").status_code == 403
    assert admin.delete(f"{ALL}/{hashing_model.id}").status_code == 403
    made = operator.post(f"{ALL}?scope=installation", HASHING, format="json").json()
    assert made["scope"] == "installation"
    assert [item["name"] for item in client_of(mallory).get(ALL).json()["items"]] == ["small", "hashing"]
    own = admin.post(ALL, {**HASHING, "name": "Acme's"}, format="json").json()
    assert client_of(mallory).get(f"{ALL}/{own['id']}").status_code == 404


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"dimension": 300}, "dimension"),
        ({"provider": "nobody"}, "provider"),
        ({"endpoint": "https://example.com"}, "endpoint"),
        ({"parameters": {"colour": 1}}, "parameters"),
        ({"colour": 1}, "colour"),
        ({"provider": "openai", "endpoint": "http://127.0.0.1:1/v1"}, "endpoint"),
        ({"provider": "openai", "credential": "sk-abcdefghijklmnopqrstuvwxyz"}, "credential"),
    ],
)
def test_a_model_that_does_not_hold_is_refused_by_path(admin, hashing_model, values, path):
    answer = admin.post(ALL, {**HASHING, **values}, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"].startswith(path)
    assert EmbeddingModel.objects.count() == 1


def test_a_credential_has_to_be_stored_first(admin, organization, hashing_model):
    remote = {**HASHING, "provider": "openai", "credential": "VENDOR"}
    answer = admin.post(ALL, remote, format="json")
    assert (answer.status_code, "VENDOR" in answer.json()["detail"]) == (400, True)
    services.set_secret(organization=None, name="VENDOR", value="the installation's key")
    assert admin.post(ALL, remote, format="json").status_code == 400  # never the installation's, it may be sent anywhere
    services.set_secret(organization=organization, name="VENDOR", value="our key")
    assert admin.post(ALL, remote, format="json").status_code == 201


def test_what_changes_vectors_is_refused_while_a_knowledge_base_uses_the_model(operator, hashing_model, knowledge_base):
    url = f"{ALL}/{hashing_model.id}"
    document = {key: value for key, value in operator.get(url).json().items() if key not in ("id", "scope", "is_ready")}
    changed = operator.put(url, {**document, "query_prefix": "query: "}, format="json")
    assert (changed.status_code, changed.json()["used_by"]) == (409, ["Handbooks"])
    renamed = operator.put(url, {**document, "name": "renamed", "price_per_million_tokens": 0.02}, format="json")
    assert (renamed.status_code, renamed.json()["name"], renamed.json()["price_per_million_tokens"]) == (200, "renamed", 0.02)
    hashing_model.refresh_from_db()
    assert hashing_model.space == knowledge_base.space
    assert operator.delete(url).status_code == 409


def test_an_unused_model_can_become_another_and_go(admin, hashing_model):
    made = admin.post(ALL, HASHING, format="json")
    before = EmbeddingSpace.objects.get(embedding_model_id=made.json()["id"])
    changed = admin.put(made["Location"], {**HASHING, "dimension": 384}, format="json")
    after = EmbeddingSpace.objects.get(embedding_model_id=made.json()["id"])
    assert (changed.status_code, after.dimension, after.pk != before.pk) == (200, 384, True)
    assert admin.delete(made["Location"]).status_code == 204
    assert not EmbeddingSpace.objects.filter(pk=after.pk).exists()


def test_the_default_moves(operator, hashing_model):
    made = operator.post(f"{ALL}?scope=installation", {**HASHING, "is_default": True}, format="json")
    hashing_model.refresh_from_db()
    assert (made.json()["is_default"], hashing_model.is_default) == (True, False)


def test_the_test_call_goes_to_the_real_provider(operator, organization, server):
    services.set_secret(organization=None, name="VENDOR", value="the key")
    remote = {**HASHING, "provider": "openai", "endpoint": server.endpoint, "credential": "VENDOR", "dimension": server.dimension}
    url = operator.post(f"{ALL}?scope=installation", remote, format="json")["Location"]
    body = operator.post(f"{url}/test").json()
    assert body["dimension"] == server.dimension
    assert 0 < body["similarity"] < 1
    assert len(server.texts()) == 2
    server.answer_next(Answer(status=401))
    refused = operator.post(f"{url}/test")
    assert refused.status_code == 502
    assert "refuses the credential" in refused.json()["detail"]
    assert b"the key" not in refused.content
    server.answer_next(Answer(dimension=server.dimension * 2))
    assert "registered with" in operator.post(f"{url}/test").json()["detail"]


def test_an_unreachable_provider_is_a_sentence(operator, organization):
    services.set_secret(organization=None, name="VENDOR", value="the key")
    remote = {**HASHING, "provider": "openai", "endpoint": "http://127.0.0.1:9/v1", "credential": "VENDOR"}
    url = operator.post(f"{ALL}?scope=installation", remote, format="json")["Location"]
    answer = operator.post(f"{url}/test")
    assert answer.status_code in (502, 503)
    assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"provider": "local", "model": "/etc", "dimension": 384}, "model"),
        ({"provider": "local", "model": "somebody/else", "dimension": 384, "parameters": {"backend": "torch"}}, "model"),
        ({"parameters": {"tokenizer": "/etc/passwd"}}, "parameters"),
    ],
)
def test_files_of_the_server_are_named_by_operators_alone(admin, values, path):
    answer = admin.post(ALL, {**HASHING, **values}, format="json")
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]
    packaged = {"provider": "local", "model": "all-MiniLM-L6-v2", "dimension": 384}
    assert admin.post(ALL, {**HASHING, **packaged}, format="json").status_code == 201
