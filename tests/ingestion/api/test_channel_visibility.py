"""Private files are their owner's alone, wherever they could be seen; what is not yours looks like what is not there."""

from uuid import uuid4

import pytest

from kb.models import Document
from tests.ingestion.api.channels import FILES
from tests.ingestion.api.conftest import api_client

SECRET = b"# Plan\n\nThe falcon launches on the ninth of March from the western pad.\n"
SHARED = b"# Canteen\n\nThe canteen opens at eleven and serves soup on Mondays.\n"


@pytest.fixture
def private(sender) -> dict:
    sent = sender.send(SECRET, title="Falcon plan")
    sender.send(SHARED, title="Canteen", visibility="organization")
    sender.work()
    return sender.file(sent["id"])


@pytest.fixture
def admin(organization, carol):
    return api_client(organization, carol, "admin")


def test_a_search_finds_what_is_private_for_its_owner_only(sender, private, second_editor, viewer, admin):
    question = "When does the falcon launch?"
    for mode in ("vector", "keyword", "hybrid"):
        assert any("ninth of March" in text for text in sender.texts(question, mode=mode))
        for other in (second_editor, viewer, admin):
            found = sender.texts(question, other, mode=mode)
            assert not any("ninth of March" in text for text in found), mode
    assert any("soup" in text for text in sender.texts("What does the canteen serve?", viewer))


def test_a_filter_names_no_private_document(sender, private, second_editor):
    condition = {"type": "eq", "key": "document_id", "value": private["resource_id"]}
    assert sender.texts("falcon", filters=condition)
    assert sender.texts("falcon", second_editor, filters=condition) == []
    negated = {"type": "not", "filter": {"type": "eq", "key": "title", "value": "Canteen"}}
    assert sender.texts("falcon", second_editor, filters=negated) == []


def test_private_documents_do_not_crowd_out_what_may_be_seen(sender, second_editor):
    """The candidates of a search are few: those of others must not fill them."""
    for number in range(70):
        sender.send(b"# Falcon\n\nThe falcon flies over hill number %d and over valley number %d." % (number, number), title=f"f{number}")
    sender.send(b"# Owl\n\nThe owl and not the falcon flies at night.", title="owl", visibility="organization")
    sender.work()
    assert sender.texts("falcon flies", second_editor) == ["# Owl\n\nThe owl and not the falcon flies at night."]


def test_reading_lists_and_counts_keep_it_back(sender, private, second_editor, viewer, kb_url, channel):
    absent = viewer.get(f"{FILES}/{uuid4()}")
    for other in (second_editor, viewer):
        for url in (
            private["id"],
            private["resource_id"],
            f"{private['id']}/content",
            f"{private['id']}/versions",
            f"{private['id']}/policy",
        ):
            answer = other.get(f"{FILES}/{url}")
            assert (answer.status_code, answer.content) == (404, absent.content)
        assert other.delete(f"{FILES}/{private['id']}").status_code == 404
        assert other.post(f"{FILES}/{private['id']}/retry").status_code == 404
        assert other.get(f"/api/v1/documents/{private['resource_id']}").status_code == 404
        assert other.delete(f"/api/v1/documents/{private['resource_id']}").status_code == 404
        for url in (FILES, f"{FILES}?q=falcon", f"{kb_url}/documents", f"{kb_url}/documents?q=falcon"):
            listed = other.get(url)
            assert listed.status_code == 200
            assert b"alcon" not in listed.content
        assert b"Canteen" in other.get(FILES).content
        documents = f"{kb_url}/sources/{channel['source_id']}/documents"
        assert b"alcon" not in other.get(documents).content


def test_runs_tell_nothing_of_private_files(editor, sender, private, second_editor, kb_url, channel, work):
    run = editor.post(f"{kb_url}/sources/{channel['source_id']}/run").json()["run_id"]
    work(run)
    assert b"alcon" in editor.get(f"/api/v1/runs/{run}/documents").content
    verdicts = second_editor.get(f"/api/v1/runs/{run}/documents").content
    assert b"alcon" not in verdicts
    assert b"Canteen" in verdicts
    push = Document.objects.get(id=private["resource_id"])
    for url in (f"/api/v1/runs/{push.last_run_id}", f"{kb_url}/ingestions/{push.last_run_id}"):
        sender_s = sender.send(SECRET, title="Falcon plan")
        pushed = Document.objects.get(id=sender_s["resource_id"]).last_run_id
        assert second_editor.get(url.replace(str(push.last_run_id), str(pushed))).status_code == 404


def test_traces_of_private_hits_are_the_asker_s(editor, sender, private, second_editor, admin):
    asked = editor.post("/api/v1/search", {"query": "falcon launch", "min_score": 0}, format="json").json()
    assert editor.get(f"/api/v1/traces/{asked['trace_id']}").status_code == 200
    for other in (second_editor, admin):
        assert other.get(f"/api/v1/traces/{asked['trace_id']}").status_code == 404
        assert asked["trace_id"] not in str(other.get("/api/v1/traces").json())


def test_where_only_private_documents_of_others_are_it_is_empty(sender, second_editor):
    sender.send(SECRET, title="Falcon plan")
    sender.work()
    answer = second_editor.post("/api/v1/search", {"query": "falcon", "min_score": 0}, format="json").json()
    assert (answer["hits"], answer["reason"]) == ([], "knowledge_base_empty")


def test_a_title_of_somebody_else_s_private_file_is_free(sender, private, second_editor):
    answer = sender.post(b"# Mine\n\nAnother plan of another falcon.", client=second_editor, title="Falcon plan")
    assert answer.status_code == 201
    assert (answer.json()["version"], answer.json()["resource_id"] == private["resource_id"]) == (1, False)
    sender.work()
    assert sender.file(private["id"])["status"] == "indexed"


def test_everybody_s_title_is_one_for_all_editors(sender, second_editor):
    first = sender.send(SHARED, title="Canteen", visibility="organization")
    second = sender.post(SHARED + b"And salad.", client=second_editor, title="canteen", visibility="organization").json()
    assert (second["resource_id"], second["version"]) == (first["resource_id"], 2)


def test_viewers_send_and_change_nothing(sender, viewer, private, channel):
    canteen = next(row for row in viewer.get(FILES).json()["items"] if row["title"] == "Canteen")
    assert sender.post(SHARED, client=viewer, title="x").status_code == 403
    assert viewer.delete(f"{FILES}/{canteen['id']}").status_code == 403
    assert viewer.post(f"{FILES}/{canteen['id']}/retry").status_code == 403
    assert viewer.get(f"/api/v1/channels/{channel['id']}").status_code == 200
    assert viewer.delete(f"/api/v1/channels/{channel['id']}").status_code == 403
    assert viewer.put(f"/api/v1/channels/{channel['id']}", {}, format="json").status_code == 403


def test_another_organization_sees_none_of_it(sender, stranger, anonymous, private, channel):
    absent = stranger.get(f"{FILES}/{uuid4()}")
    for identifier in (private["id"], private["resource_id"]):
        answer = stranger.get(f"{FILES}/{identifier}")
        assert (answer.status_code, answer.content) == (404, absent.content)
    assert stranger.get(FILES).json()["items"] == []
    foreign = sender.post(SHARED, client=stranger, title="x")
    missing = sender.post(SHARED, client=stranger, title="x", channel=str(uuid4()))
    named = sender.post(SHARED, client=stranger, title="x", channel="Uploads")
    assert [answer.status_code for answer in (foreign, missing, named)] == [404, 404, 404]
    assert foreign.content == missing.content == named.content
    assert sender.post(SHARED, client=anonymous, title="x").status_code == 401


def test_a_key_of_nobody_has_private_files_of_its_own(organization, sender, channel, knowledge_base):
    keys = [api_client(organization, None, "editor") for _ in range(2)]
    sent = sender.post(SECRET, client=keys[0], title="Falcon plan").json()
    sender.work()
    assert sender.file(sent["id"], keys[0])["status"] == "indexed"
    assert keys[1].get(f"{FILES}/{sent['id']}").status_code == 404
    assert sender.texts("falcon", keys[0])
    assert sender.texts("falcon", keys[1]) == sender.texts("falcon") == []


def test_what_somebody_left_behind_is_the_administrators(sender, admin, editor, second_editor):
    from kb.models import User

    sent = sender.post(SECRET, client=second_editor, title="Falcon plan").json()
    assert admin.get(f"{FILES}/{sent['id']}").status_code == 404
    User.objects.get(username="erin").delete()
    assert admin.get(f"{FILES}/{sent['id']}").status_code == 200
    assert editor.get(f"{FILES}/{sent['id']}").status_code == 404


def test_a_private_knowledge_base_keeps_its_channel(sender, editor, viewer, second_editor, hashing_model):
    kb = editor.post("/api/v1/knowledge-bases", {"name": "Closed"}, format="json").json()["id"]
    made = editor.post("/api/v1/channels", {"name": "closed", "knowledge_base_id": kb}, format="json").json()
    sent = sender.send(SHARED, channel="closed", title="c", visibility="organization")
    for other in (viewer, second_editor):
        assert other.get(f"/api/v1/channels/{made['id']}").status_code == 404
        assert other.get(f"{FILES}/{sent['id']}").status_code == 404
        assert sender.post(SHARED, client=other, channel="closed", title="c").status_code == 404


@pytest.fixture
def run_of_channel(editor, private, kb_url, channel, work) -> str:
    """A run over the private file and the open one, after both were purged by the private one's owner."""
    source = f"{kb_url}/sources/{channel['source_id']}"
    assert editor.delete(f"{source}/documents").json()["documents"] == 2
    run = editor.post(f"{source}/run").json()["run_id"]
    work(run)
    return run


def test_a_source_counts_what_the_asker_may_see(editor, private, second_editor, viewer, kb_url, channel):
    def counts(client) -> tuple[int, int]:
        one = client.get(f"{kb_url}/sources/{channel['source_id']}").json()
        listed = {row["id"]: row["documents"] for row in client.get(f"{kb_url}/sources").json()["items"]}
        return one["documents"], listed[channel["source_id"]]

    assert counts(editor) == (2, 2)
    assert counts(second_editor) == counts(viewer) == (1, 1)


def test_a_run_counts_what_the_asker_may_see(editor, private, second_editor, viewer, run_of_channel, kb_url, channel):
    def counters(client) -> list[dict]:
        runs = client.get(f"{kb_url}/sources/{channel['source_id']}/runs").json()["items"]
        events = client.get(f"/api/v1/runs/{run_of_channel}/events", HTTP_ACCEPT="text/event-stream")
        assert events.status_code == 200
        return [client.get(f"/api/v1/runs/{run_of_channel}").json()["counters"], *(row["counters"] for row in runs)]

    assert [(found["found"], found["ingested"], found["chunks"]) for found in counters(editor)] == [(2, 2, 2)] * 2
    for other in (second_editor, viewer):
        for found in counters(other):
            assert (found["found"], found["ingested"], found["chunks"], found["bytes"]) == (1, 1, 1, len(SHARED))
            assert not {"tokens", "requests", "cost"} & set(found), "those of the provider are of all documents together"


def test_what_is_done_to_a_channel_leaves_private_files_of_others_alone(sender, private, second_editor, kb_url, channel, work):
    source = f"{kb_url}/sources/{channel['source_id']}"
    before = Document.objects.get(id=private["resource_id"])
    assert second_editor.delete(f"{source}/documents?reembed=true").json()["documents"] == 1
    untouched = Document.objects.get(id=private["resource_id"])
    assert (untouched.content_hash, untouched.space_id) == (before.content_hash, before.space_id)
    assert Document.objects.get(key="Canteen").content_hash is None
    started = second_editor.post(f"{source}/reextract").json()
    assert started["documents"] == 1
    work(started["run_id"])
    assert Document.objects.get(id=private["resource_id"]).generation == before.generation
    assert sender.file(private["id"])["status"] == "indexed"
