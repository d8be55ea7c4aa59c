"""Channels and bound services through the API."""

import pytest

from tests.ingestion.api.conftest import api_client

pytestmark = pytest.mark.django_db
CHANNELS, BINDINGS = "/api/v1/channels", "/api/v1/service-bindings"
WHISPER = {"purpose": "transcription", "endpoint": "https://Speech.example:443/v1/audio/", "credential": "SPEECH_KEY"}


@pytest.fixture
def editor(organization, alice):
    return api_client(organization, alice, "editor")


@pytest.fixture
def admin(organization, carol):
    return api_client(organization, carol, "admin")


@pytest.fixture
def body(knowledge_base) -> dict:
    return {"name": "Uploads", "knowledge_base_id": str(knowledge_base.id)}


@pytest.fixture
def channel(editor, body) -> dict:
    answer = editor.post(CHANNELS, body, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_a_channel_is_made_read_changed_and_deleted(editor, body, channel):
    url = f"{CHANNELS}/{channel['id']}"
    assert editor.get(url).json() == channel
    assert editor.get(CHANNELS).json()["items"] == [channel]
    changed = editor.put(url, {**body, "name": "Contracts", "policy": {"ocr": "off"}}, format="json").json()
    assert (changed["id"], changed["name"], changed["policy"]) == (channel["id"], "Contracts", {"ocr": "off"})
    assert editor.delete(url).status_code == 204
    assert editor.get(url).status_code == 404
    assert editor.delete(url).status_code == 404


def test_names_are_one_in_the_organization(editor, body, channel):
    answer = editor.post(CHANNELS, {**body, "name": "uploads"}, format="json")
    assert answer.status_code == 409
    assert "already a channel named" in answer.json()["detail"]


def test_a_channel_keeps_its_knowledge_base(editor, body, channel, hashing_model):
    other = editor.post("/api/v1/knowledge-bases", {"name": "Other"}, format="json").json()["id"]
    answer = editor.put(f"{CHANNELS}/{channel['id']}", {**body, "knowledge_base_id": other}, format="json")
    assert answer.status_code == 409


def test_the_default_moves(editor, body, channel):
    first = editor.put(f"{CHANNELS}/{channel['id']}", {**body, "is_default": True}, format="json").json()
    second = editor.post(CHANNELS, {**body, "name": "Second", "is_default": True}, format="json").json()
    assert (first["is_default"], second["is_default"]) == (True, True)
    assert editor.get(f"{CHANNELS}/{channel['id']}").json()["is_default"] is False


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"policy": {"chunkng": {}}}, "policy.chunkng"),
        ({"policy": {"chunking": {"target": 3}}}, "policy.chunking.target"),
        ({"policy": {"chunking": {"target_tokens": 64, "overlap": 100}}}, "chunking.overlap"),
        ({"policy": {"transcribe": {"endpoint": "https://evil.example"}}}, "transcribe.endpoint"),
        ({"policy": {"vision": {"credential": "SPEECH_KEY"}}}, "vision.credential"),
        ({"name": "a\u0007b"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(editor, body, change, path):
    answer = editor.post(CHANNELS, {**body, **change}, format="json")
    assert answer.status_code == 400, answer.content
    assert answer.json()["errors"][0]["path"] == path


def test_the_policy_explains_itself(editor, body, channel):
    url = f"{CHANNELS}/{channel['id']}"
    editor.put(url, {**body, "policy": {"chunking": {"target_tokens": 300}, "keep_markdown": False}}, format="json")
    shown = editor.get(f"{url}/policy?media_type=audio/wav").json()
    assert shown["family"] == "audio"
    assert shown["policy"]["chunking"] == {
        "strategy": "transcript",
        "target_tokens": 300,
        "overlap": 0.15,
        "min_chars": 120,
        "tokenizer": "model",
    }
    origins = shown["origins"]
    assert (origins["chunking.target_tokens"], origins["chunking.overlap"], origins["ocr"]) == ("channel", "family", "default")
    asked = {"file_name": "a.csv", "policy": {"mode": "text", "chunking": {"overlap": 10}}}
    shown = editor.post(f"{url}/policy", asked, format="json").json()
    assert (shown["family"], shown["policy"]["mode"], shown["origins"]["mode"]) == ("tabular", "text", "upload")
    refused = editor.post(f"{url}/policy", {"policy": {"mod": "text"}}, format="json")
    assert refused.json()["errors"][0]["path"] == "policy.mod"
    assert editor.get(f"{CHANNELS}/policy-schema").json()["additionalProperties"] is False


def test_only_what_was_bound_together_is_taken(editor, admin, body):
    bound = admin.post(BINDINGS, WHISPER, format="json")
    assert bound.status_code == 201, bound.content
    assert bound.json()["endpoint"] == "https://speech.example/v1/audio"

    def try_policy(**service):
        return editor.post(CHANNELS, {**body, "policy": {"transcribe": service}}, format="json")

    for pair in (
        {"endpoint": "https://evil.example/v1/audio", "credential": "SPEECH_KEY"},
        {"endpoint": "https://speech.example/v1/other", "credential": "SPEECH_KEY"},
        {"endpoint": "http://speech.example/v1/audio", "credential": "SPEECH_KEY"},
        {"endpoint": "https://speech.example/v1/audio", "credential": "OTHER_KEY"},
        {"endpoint": "https://speech.example/v1/audio"},
        {"credential": "SPEECH_KEY"},
    ):
        answer = try_policy(**pair)
        assert answer.status_code == 400, pair
        assert "bound together" in answer.json()["detail"]
    made = try_policy(endpoint="https://speech.example/v1/audio", credential="SPEECH_KEY")
    assert made.status_code == 201, made.content
    # The upload changes one half of what the channel named.
    url = f"{CHANNELS}/{made.json()['id']}/policy"
    swapped = editor.post(url, {"policy": {"transcribe": {"endpoint": "https://evil.example"}}}, format="json")
    assert swapped.status_code == 400
    assert admin.delete(f"{BINDINGS}/{bound.json()['id']}").status_code == 204
    assert editor.get(url).status_code == 400  # asked again at every use


def test_who_binds(editor, admin, organization, alice, carol):
    assert editor.post(BINDINGS, WHISPER, format="json").status_code == 403
    assert admin.post(f"{BINDINGS}?scope=installation", WHISPER, format="json").status_code == 403
    private = admin.post(BINDINGS, {**WHISPER, "endpoint": "http://10.1.2.3/v1"}, format="json")
    assert private.status_code == 400
    assert admin.post(BINDINGS, {**WHISPER, "credential": "sk-abcdefghijklmnop"}, format="json").status_code == 400
    made = admin.post(BINDINGS, WHISPER, format="json").json()
    assert admin.post(BINDINGS, WHISPER, format="json").status_code == 409
    assert editor.get(f"{BINDINGS}/{made['id']}").json() == made
    assert editor.put(f"{BINDINGS}/{made['id']}", WHISPER, format="json").status_code == 403
    assert editor.delete(f"{BINDINGS}/{made['id']}").status_code == 403
    changed = admin.put(f"{BINDINGS}/{made['id']}", {**WHISPER, "model": "whisper-1"}, format="json").json()
    assert (changed["model"], changed["scope"]) == ("whisper-1", "organization")


def test_a_limited_key_makes_channels_where_it_may_and_no_default(organization, alice, knowledge_base, body):
    from rest_framework.test import APIClient

    from kb import services

    _, value = services.create_api_key(organization, name="one", role="editor", knowledge_base_ids=[knowledge_base.id], created_by=alice)
    limited = APIClient(HTTP_AUTHORIZATION=f"Bearer {value}")
    assert limited.post(CHANNELS, body, format="json").status_code == 201
    assert limited.post(CHANNELS, {**body, "name": "x", "is_default": True}, format="json").status_code == 403


def test_duplicates_by_key_are_one(editor, body):
    headers = {"Idempotency-Key": "channel-1"}
    first, second = (editor.post(CHANNELS, body, format="json", headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert len(editor.get(CHANNELS).json()["items"]) == 1
