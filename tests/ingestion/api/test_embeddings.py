"""Embeddings over the API and in the admin: stale is said with its reason, a change is followed, stopped, begun again and undone."""

import pytest
from django.test import Client
from django.urls import reverse

from kb.models import KnowledgeBase, SpaceChange
from tests.ingestion.refill.conftest import refill

pytestmark = pytest.mark.django_db
State = SpaceChange.State


@pytest.fixture
def other(make_space, second_partition):
    return make_space("other", provider="hashing", dimension=384, pk=second_partition)


@pytest.fixture
def indexed(upload, run_now, other):
    """Two documents that answer, and another model to go to."""
    upload(("leave.md", b"# Leave\n\nThirty days of leave a year."), ("cat.md", b"# Cat\n\nThe cat sleeps."))
    assert run_now().status == "succeeded"


def name_model(editor, kb_url: str, model: str) -> None:
    current = editor.get(kb_url).json()
    answer = editor.put(f"{kb_url}?version={current['version']}", {**current["document"], "embedding_model": model}, format="json")
    assert answer.status_code == 200, answer.content


def test_what_is_up_to_date_is_said_to_be(editor, viewer, kb_url, indexed):
    found = viewer.get(kb_url).json()["embeddings"]
    assert (found["stale"], found["reason"], found["missing"], found["change"]) == (False, "", 0, None)
    assert [(space["use"], space["vectors"], space["chunks"]) for space in found["coverage"]] == [("answers", 2, 2)]
    assert viewer.get(f"{kb_url}/embeddings").json() == found


def test_a_change_is_followed_from_stale_to_done(editor, viewer, kb_url, indexed):
    name_model(editor, kb_url, "other")
    found = viewer.get(f"{kb_url}/embeddings").json()
    assert found["stale"] is True
    assert "answered by the model hashing; the current version names other" in found["reason"]
    assert "dimension 256 → 384" in found["reason"]
    assert (found["model"]["name"], found["answering"]["name"]) == ("other", "hashing")
    assert {(space["use"], space["vectors"]) for space in found["coverage"]} == {("answers", 2), ("filling", 0)}
    change = found["change"]
    assert (change["state"], change["missing"], change["chunks"], change["can_roll_back"]) == ("filling", 2, 2, True)
    refill(SpaceChange.objects.get())
    found = viewer.get(f"{kb_url}/embeddings").json()
    assert (found["missing"], found["change"]["state"], found["answering"]["name"]) == (0, "grace", "other")
    assert found["reason"].startswith("2 of 2 documents were cut under other settings"), "for the tokenizer of the model before"
    assert {(space["use"], space["vectors"]) for space in found["coverage"]} == {("answers", 2), ("grace", 2)}
    assert found["change"]["grace_until"]


def test_a_change_is_stopped_and_begun_again(editor, kb_url, indexed):
    name_model(editor, kb_url, "other")
    assert editor.post(f"{kb_url}/embeddings/cancel").json()["change"]["state"] == "cancelled"
    assert editor.post(f"{kb_url}/embeddings/cancel").status_code == 409
    found = editor.get(kb_url).json()["embeddings"]
    assert (found["stale"], found["answering"]["name"]) == (True, "hashing")
    assert "was stopped" in found["reason"]
    answer = editor.post(f"{kb_url}/reembed")
    assert answer.status_code == 202
    told = answer.json()
    assert (told["reembedded"], told["total"], told["errors"]) == (0, 2, [])
    assert told["embeddings"]["change"]["state"] == "filling"
    assert editor.post(f"{kb_url}/reembed").json()["embeddings"]["change"]["id"] == told["embeddings"]["change"]["id"]
    assert editor.post(f"{kb_url}/reembed?reembed=true").status_code == 409
    assert refill(SpaceChange.objects.latest("created_at")).state == State.GRACE
    assert editor.post(f"{kb_url}/reembed").json()["reembedded"] == 2


def test_one_click_goes_back(editor, kb_url, indexed):
    assert editor.post(f"{kb_url}/embeddings/rollback").status_code == 409
    name_model(editor, kb_url, "other")
    refill(SpaceChange.objects.get())
    found = editor.post(f"{kb_url}/embeddings/rollback", headers={"Idempotency-Key": "back"}).json()
    assert (found["stale"], found["answering"]["name"], found["model"]["name"]) == (False, "hashing", "hashing")
    assert editor.get(kb_url).json()["document"]["embedding_model"] == "hashing"
    again = editor.post(f"{kb_url}/embeddings/rollback", headers={"Idempotency-Key": "back"})
    assert again.headers["Idempotent-Replayed"] == "true"
    assert editor.get(kb_url).json()["version"] == 3


def test_viewers_read_and_change_nothing(viewer, kb_url, indexed):
    for path in ("reembed", "embeddings/cancel", "embeddings/rollback"):
        assert viewer.post(f"{kb_url}/{path}").status_code == 403


def test_a_model_on_the_way_cannot_be_removed(editor, kb_url, indexed, other, knowledge_base):
    from config.errors import Conflict
    from kb.embedding_models import delete_model

    name_model(editor, kb_url, "other")
    with pytest.raises(Conflict, match="Handbooks"):
        delete_model(other.embedding_model)


def test_the_admin_shows_a_banner_and_has_the_buttons(editor, kb_url, indexed, knowledge_base, alice):
    alice.is_staff = True
    alice.save()
    client = Client()
    client.force_login(alice)
    page = reverse("admin:kb_knowledgebase_change", args=[knowledge_base.id])
    assert "Re-embed" not in client.get(page).content.decode()
    name_model(editor, kb_url, "other")
    shown = client.get(page).content.decode()
    assert "the current version names other" in shown
    buttons = reverse("admin:kb_spacechange_embeddings", args=[knowledge_base.id])
    assert buttons in shown
    assert "Stop the change" in client.get(buttons).content.decode()
    client.post(buttons, {"action": "cancel"})
    assert SpaceChange.objects.get().state == State.CANCELLED
    client.post(buttons, {"action": "reembed"})
    refill(SpaceChange.objects.latest("created_at"))
    assert "Roll back to hashing" in client.get(buttons).content.decode()
    client.post(buttons, {"action": "rollback"})
    assert KnowledgeBase.objects.get(id=knowledge_base.id).space.embedding_model.name == "hashing"
    assert "Load the page again" in client.post(buttons, {"action": "other"}, follow=True).content.decode()
    assert client.get(reverse("admin:kb_spacechange_changelist")).status_code == 200
    row = SpaceChange.objects.latest("created_at")
    assert client.get(reverse("admin:kb_spacechange_change", args=[row.id])).status_code == 200


def test_the_admin_shows_nothing_of_another_organization(indexed, knowledge_base, mallory):
    mallory.is_staff = True
    mallory.save()
    client = Client()
    client.force_login(mallory)
    buttons = reverse("admin:kb_spacechange_embeddings", args=[knowledge_base.id])
    assert client.get(buttons).status_code == client.post(buttons, {"action": "anew"}).status_code == 404
