"""Members, API keys and secrets over REST: administrators only, and values are shown once or never."""

from datetime import timedelta

import pytest
from django.utils import timezone

from kb import services
from kb.models import ApiKey, Secret

pytestmark = pytest.mark.django_db
KEYS, SECRETS, MEMBERS = "/api/v1/api-keys", "/api/v1/secrets", "/api/v1/members"


def test_everybody_sees_the_organization_and_their_role(client_of, bob, carol, key_client):
    assert client_of(bob).get("/api/v1/organization").json()["role"] == "viewer"
    assert client_of(carol).get("/api/v1/organization").json()["role"] == "admin"
    assert key_client(role="editor").get("/api/v1/organization").json() | {"id": ""} == {"id": "", "name": "Acme", "role": "editor"}


@pytest.mark.parametrize("path", [KEYS, SECRETS, MEMBERS])
def test_administration_is_for_administrators(client_of, bob, carol, path):
    assert (client_of(bob).get(path).status_code, client_of(carol).get(path).status_code) == (403, 200)


def test_a_key_is_shown_once_works_and_is_revoked(client_of, carol, api_client, knowledge_base):
    admin = client_of(carol)
    made = admin.post(KEYS, {"name": "bot", "role": "editor", "knowledge_base_ids": [str(knowledge_base.id)]}, format="json")
    assert made.status_code == 201, made.content
    value = made.json()["value"]
    bot = api_client(value)
    assert [item["name"] for item in bot.get("/api/v1/knowledge-bases").json()["items"]] == ["Handbooks"]
    assert value.encode() not in admin.get(KEYS).content + admin.get(made["Location"]).content
    assert admin.delete(made["Location"]).status_code == 204
    assert bot.get("/api/v1/knowledge-bases").status_code == 401
    assert admin.get(KEYS).json()["items"][0]["revoked_at"]


def test_what_a_key_cannot_be_made_with(client_of, carol, mallory, hashing_model, knowledge_base):
    admin = client_of(carol)
    past = timezone.now().isoformat()
    bodies = [{"name": ""}, {"name": "x", "role": "owner"}, {"name": "x", "expires_at": past}, {"name": "x", "value": "lk_mine"}]
    assert [admin.post(KEYS, body, format="json").status_code for body in bodies] == [400] * 4
    stranger = client_of(mallory)
    foreign = stranger.post(KEYS, {"name": "x", "knowledge_base_ids": [str(knowledge_base.id)]}, format="json")
    absent = stranger.post(KEYS, {"name": "x", "knowledge_base_ids": ["00000000-0000-7000-8000-000000000000"]}, format="json")
    assert (foreign.status_code, foreign.content) == (400, absent.content)
    assert ApiKey.objects.count() == 0


def test_a_limited_key_cannot_make_an_unlimited_one(key_client, knowledge_base):
    limited = key_client(role="admin", knowledge_base_ids=[knowledge_base.id])
    assert limited.post(KEYS, {"name": "x", "role": "admin"}, format="json").status_code == 403
    assert key_client(role="admin").post(KEYS, {"name": "x"}, format="json").status_code == 201


def test_a_key_does_not_outlive_the_one_that_made_it(key_client):
    end = timezone.now() + timedelta(days=7)
    expiring = key_client(role="admin", expires_at=end)
    for later in (None, (end + timedelta(seconds=1)).isoformat()):
        refused = expiring.post(KEYS, {"name": "x", "role": "admin", "expires_at": later}, format="json")
        assert refused.status_code == 400
        assert f"at most {end.isoformat()}" in refused.json()["detail"]
    assert expiring.post(KEYS, {"name": "x", "role": "admin", "expires_at": end.isoformat()}, format="json").status_code == 201


def test_a_limited_key_does_not_see_the_names_of_secrets(key_client, knowledge_base):
    assert key_client(role="editor", knowledge_base_ids=[knowledge_base.id]).get(SECRETS).status_code == 403
    assert key_client(role="editor").get(SECRETS).status_code == 200


def test_secrets_have_names_only(client, client_of, carol, organization):
    admin = client_of(carol)
    made = admin.post(SECRETS, {"name": "OPENAI", "value": "sk-very-secret"}, format="json")
    assert (made.status_code, set(made.json())) == (201, {"id", "name", "created_at", "updated_at"})
    assert [item["name"] for item in client.get(SECRETS).json()["items"]] == ["OPENAI"]  # an editor writes documents
    assert client.post(SECRETS, {"name": "X", "value": "v"}, format="json").status_code == 403
    assert services.secret_value(organization.id, "OPENAI") == "sk-very-secret"
    admin.post(SECRETS, {"name": "OPENAI", "value": "sk-newer"}, format="json")
    assert services.secret_value(organization.id, "OPENAI") == "sk-newer"
    assert admin.delete(f"{SECRETS}/{made.json()['id']}").status_code == 204
    assert Secret.objects.count() == 0


@pytest.mark.parametrize("body", [{"name": "1x", "value": "v"}, {"name": "a b", "value": "v"}, {"name": "X", "value": ""}, {"name": "X"}])
def test_a_secret_that_cannot_be_one_is_refused_without_its_value(client_of, carol, body):
    assert client_of(carol).post(SECRETS, body, format="json").status_code == 400


def test_the_installation_s_secrets_are_the_operator_s(client_of, carol, admin_user, organization):
    assert client_of(carol).post(f"{SECRETS}?scope=installation", {"name": "X", "value": "v"}, format="json").status_code == 403
    assert client_of(carol).get(f"{SECRETS}?scope=installation").status_code == 403
    operator = client_of(admin_user)
    made = operator.post(f"{SECRETS}?scope=installation", {"name": "X", "value": "v"}, format="json")
    assert (made.status_code, Secret.objects.get().organization_id) == (201, None)
    assert client_of(carol).delete(f"{SECRETS}/{made.json()['id']}").status_code == 404
    assert operator.delete(f"{SECRETS}/{made.json()['id']}").status_code == 204


def test_members_are_listed_changed_and_removed(client_of, carol, bob, mallory):
    admin = client_of(carol)
    assert [item["user"]["username"] for item in admin.get(MEMBERS).json()["items"]] == ["bob", "carol"]
    assert admin.put(f"{MEMBERS}/{bob.pk}", {"role": "editor"}, format="json").json()["role"] == "editor"
    assert admin.delete(f"{MEMBERS}/{bob.pk}").status_code == 204
    assert client_of(bob).get("/api/v1/organization").status_code == 403
    foreign = admin.put(f"{MEMBERS}/{mallory.pk}", {"role": "viewer"}, format="json")
    assert (foreign.status_code, foreign.content) == (404, admin.put(f"{MEMBERS}/999999", {"role": "viewer"}, format="json").content)


def test_the_last_administrator_stays(client_of, carol):
    admin = client_of(carol)
    assert admin.delete(f"{MEMBERS}/{carol.pk}").status_code == 409
    assert admin.put(f"{MEMBERS}/{carol.pk}", {"role": "viewer"}, format="json").status_code == 409
