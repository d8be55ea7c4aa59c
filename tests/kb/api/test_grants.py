"""Grants over REST: who opens a private knowledge base to whom."""

import pytest

from kb import services

pytestmark = pytest.mark.django_db


@pytest.fixture
def private(actor, hashing_model) -> str:
    made = services.create_knowledge_base(actor, document={"name": "Private"})
    return f"/api/v1/knowledge-bases/{made.id}"


def test_a_grant_opens_and_closes(client, client_of, bob, private):
    assert client_of(bob).get(private).status_code == 404
    answer = client.put(f"{private}/grants/{bob.pk}", {"level": "viewer"}, format="json")
    assert (answer.status_code, answer.json()["user"]) == (200, {"id": bob.pk, "username": "bob"})
    assert client_of(bob).get(private).status_code == 200
    assert client_of(bob).get(f"{private}/grants").status_code == 403
    assert client_of(bob).put(f"{private}/grants/{bob.pk}", {"level": "editor"}, format="json").status_code == 403
    assert [item["user"]["username"] for item in client.get(f"{private}/grants").json()["items"]] == ["bob", "alice"]
    assert client.delete(f"{private}/grants/{bob.pk}").status_code == 204
    assert client.delete(f"{private}/grants/{bob.pk}").status_code == 404
    assert client_of(bob).get(private).status_code == 404


def test_an_administrator_needs_no_grant_to_give_one(client_of, carol, bob, private):
    assert client_of(carol).put(f"{private}/grants/{bob.pk}", {"level": "editor"}, format="json").status_code == 200
    assert client_of(bob).put(f"{private}?version=1", {"name": "Renamed"}, format="json").status_code == 200


def test_only_members_can_be_given_one(client, mallory, private):
    foreign = client.put(f"{private}/grants/{mallory.pk}", {"level": "viewer"}, format="json")
    absent = client.put(f"{private}/grants/999999", {"level": "viewer"}, format="json")
    assert (foreign.status_code, foreign.content) == (400, absent.content)
    assert client.put(f"{private}/grants/x", {"level": "viewer"}, format="json").status_code == 404
    assert client.put(f"{private}/grants/{mallory.pk}", {"level": "owner"}, format="json").status_code == 400
