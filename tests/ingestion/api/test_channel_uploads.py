"""What is sent wrong, too much, twice, or to do harm."""

import json
import threading
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections

from config.tenancy import carried
from kb.models import Blob, Document, File
from tests.ingestion.api.channels import FILES
from tests.ingestion.api.conftest import api_client

NOTE = b"# Leave\n\nThirty days of leave a year.\n"


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"title": "a\0b"}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"title": "\u202e\u200b"}, "title"),
        ({"title": "x" * 301}, "title"),
        ({"visibility": "public"}, "visibility"),
        ({"policy": "{"}, ""),
        ({"policy": {"chunkng": 1}}, "policy.chunkng"),
        ({"policy": {"chunking": {"target_tokens": 9}}}, "policy.chunking.target_tokens"),
        ({"policy": "[]"}, "policy"),
        ({"policy": {"transcribe": {"endpoint": "https://evil.example/v1", "credential": "KEY"}}}, "transcribe.endpoint"),
        ({"file_name": "a\0.md", "title": "x"}, "file name"),
    ],
)
def test_what_cannot_be_is_refused_by_its_place(sender, said, path):
    answer = sender.post(NOTE, **said)
    assert answer.status_code == 400, answer.content
    if path:
        assert answer.json()["errors"][0]["path"] == path
    assert File.objects.count() == 0


@pytest.mark.parametrize(
    "title", ["../../etc/passwd", "/etc/passwd", "C:\\Windows\\win.ini", "..", ".", "a/b/c.md", "%2e%2e%2f", "con", "\u00fc" * 300]
)
def test_a_title_is_only_a_title(editor, sender, title):
    sent = sender.send(NOTE, title=title)
    assert sent["title"] == title
    sender.work()
    assert sender.file(sent["id"])["status"] == "indexed"
    answer = editor.get(f"{FILES}/{sent['id']}/content")
    assert answer["Content-Disposition"].startswith("attachment;")
    assert not {"/", "\\"} & set(sent["file_name"])
    assert sent["file_name"] not in (".", "..")
    key = Blob.objects.get(sha256=bytes.fromhex(sent["checksum"])).storage_key
    assert title not in key


def test_nothing_is_nothing(sender, editor, channel):
    assert sender.post(b"", title="x").status_code == 400
    empty = SimpleUploadedFile("a.md", b"")
    answers = [
        editor.post(FILES, {"channel": channel["id"], "file": empty}, format="multipart"),
        editor.post(FILES, {"channel": channel["id"]}, format="multipart"),
        editor.post(FILES, {"a": SimpleUploadedFile("a.md", NOTE), "b": SimpleUploadedFile("b.md", NOTE)}, format="multipart"),
    ]
    assert [answer.status_code for answer in answers] == [400, 400, 400]
    assert "empty" in answers[0].json()["detail"]
    assert "2 files" in answers[2].json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--x\r\n",
        b"not a form at all",
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\nhalf a fi',
        b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\n\xff\xfe\r\n--x--\r\n',
        b"--x\r\n\r\n\r\n--x--\r\n",
    ],
)
def test_a_broken_form_is_refused_and_not_guessed(editor, channel, body):
    answer = editor.generic("POST", f"{FILES}?channel={channel['id']}", body, content_type="multipart/form-data; boundary=x")
    assert answer.status_code == 400 or answer.json()["bytes"] == len(b"half a fi"), answer.content
    assert answer.status_code < 500
    bad = editor.generic("POST", f"{FILES}?channel={channel['id']}", NOTE, content_type="multipart/form-data")
    assert bad.status_code == 400


def test_too_large_is_413_by_what_is_announced_and_by_what_comes(sender, editor, channel, settings):
    settings.MAX_UPLOAD_BYTES = 100
    assert sender.post(bytes(101), title="x").status_code == 413
    lying = editor.generic("POST", f"{FILES}?channel={channel['id']}", bytes(101), content_type="a/b", CONTENT_LENGTH="101")
    assert lying.status_code == 413
    part = SimpleUploadedFile("a.md", b"x" * 101)
    assert editor.post(FILES, {"channel": channel["id"], "file": part}, format="multipart").status_code == 413
    exact = SimpleUploadedFile("a.md", b"x" * 100)
    assert editor.post(FILES, {"channel": channel["id"], "file": exact}, format="multipart").status_code == 201
    assert sender.post(b"y" * 100, title="x").status_code == 201


def test_a_large_file_is_never_held_whole(sender, monkeypatch):
    """Neither the body nor the stored file is read at once, by anything on the way in."""
    from django.http import HttpRequest

    from kb import blobs

    def refuse(*_):
        raise AssertionError("the whole of it was read")

    monkeypatch.setattr(HttpRequest, "body", property(refuse))
    monkeypatch.setattr(blobs, "read_bytes", refuse)
    content = b"0123456789abcdef" * 200_000
    headers = {"Idempotency-Key": str(uuid4())}
    answer = sender.client.generic(
        "POST", f"{FILES}?channel={sender.channel}&title=big", content, content_type="text/plain", headers=headers
    )
    assert answer.status_code == 201, answer.content
    assert answer.json()["bytes"] == len(content)


def test_the_same_key_gives_the_same_answer_and_one_file(sender, editor, channel):
    url = f"{FILES}?channel={channel['id']}&title=Leave"
    headers = {"Idempotency-Key": str(uuid4())}

    def send(content, url=url, media_type="text/markdown"):
        return editor.generic("POST", url, content, content_type=media_type, headers=headers)

    first, second = send(NOTE), send(NOTE)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == json.loads(second.content)
    assert second["Idempotent-Replayed"] == "true"
    assert File.objects.count() == 1
    assert send(NOTE + b"!").status_code == 422
    assert send(NOTE, url + "&visibility=organization").status_code == 422
    assert send(NOTE, media_type="text/plain").status_code == 422


def test_a_form_with_the_same_key_is_one_file_too(editor, channel):
    headers = {"Idempotency-Key": str(uuid4())}

    def send(content):
        body = {"file": SimpleUploadedFile("a.md", content), "channel": channel["id"], "title": "Leave"}
        return editor.post(FILES, body, format="multipart", headers=headers)

    assert [send(NOTE).status_code, send(NOTE).status_code, send(NOTE + b"!").status_code] == [201, 201, 422]
    assert File.objects.count() == 1


def test_a_session_needs_its_csrf_token(alice, channel):
    from rest_framework.test import APIClient

    client = APIClient(enforce_csrf_checks=True)
    client.force_login(alice)
    answer = client.generic("POST", f"{FILES}?channel={channel['id']}&title=x", NOTE, content_type="text/markdown")
    assert answer.status_code == 403
    assert File.objects.count() == 0


def test_a_body_without_a_type_is_taken_as_it_is(editor, sender, channel):
    """What curl sends with --data-binary and no type."""
    answer = sender.post(NOTE, media_type="application/x-www-form-urlencoded", title="note.md")
    assert (answer.json()["bytes"], answer.json()["family"]) == (len(NOTE), "markdown")


def test_a_channel_that_is_going_takes_nothing(sender, channel, editor):
    editor.delete(f"/api/v1/channels/{channel['id']}")
    assert sender.post(NOTE, title="x").status_code == 404


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_many_at_once_under_one_title_are_versions_of_one_document(organization, alice, sender, channel):
    """Each gets its number, the last one answers, and nothing of the others is left among the chunks."""
    results, barrier = [], threading.Barrier(6)

    def send(number):
        try:
            client = api_client(organization, alice, "editor")
            barrier.wait()
            results.append(sender.post(b"# Leave\n\nVersion %d of the rule." % number, client=client, title="Leave"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=carried(send), args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in results] == [201] * 6
    rows = [answer.json() for answer in results]
    assert len({row["resource_id"] for row in rows}) == 1
    assert sorted(row["version"] for row in rows) == [1, 2, 3, 4, 5, 6]
    sender.work()
    statuses = {row["version"]: sender.file(row["id"])["status"] for row in rows}
    assert statuses == {**dict.fromkeys(range(1, 6), "superseded"), 6: "indexed"}
    assert len(sender.texts("the rule")) == 1
    assert Document.objects.count() == 1


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_uploads_against_deletions_leave_one_truth(organization, alice, sender, channel):
    """Whatever order they come in: a document and its versions, or nothing; never a file that nobody can reach."""
    statuses, barrier = [], threading.Barrier(6)

    def act(number):
        try:
            client = api_client(organization, alice, "editor")
            barrier.wait()
            for _ in range(3):
                answer = sender.post(NOTE + b"%d" % number, client=client, title="Leave")
                statuses.append(answer.status_code)
                if number % 2:
                    statuses.append(client.delete(f"{FILES}/{answer.json()['id']}").status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=carried(act), args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 200, 404, 409}, statuses
    sender.work()
    assert not File.objects.filter(resource=None).exists()
    for document in Document.objects.all():
        assert document.file_id in set(document.versions.values_list("id", flat=True))
        assert sender.file(str(document.file_id))["status"] == "indexed"
