"""Files of channels through the API: kept, answering, replaced by title, superseded, deleted."""

import hashlib

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from kb.models import Chunk, Document, File
from tests.ingestion.api.channels import FILES

NOTE = b"# Leave\n\nEvery employee of the Kestrel project has thirty days of leave a year.\n"
NEWER = NOTE.replace(b"thirty", b"thirty-five")


def test_a_file_is_kept_and_answers(editor, sender, channel):
    sent = sender.send(NOTE, title="Leave policy")
    assert (sent["status"], sent["version"], sent["bytes"], sent["visibility"]) == ("pending", 1, len(NOTE), "private")
    assert sent["checksum"] == hashlib.sha256(NOTE).hexdigest()
    assert (sent["channel_id"], sent["title"], sent["family"]) == (channel["id"], "Leave policy", "markdown")
    sender.work(until="embed")
    assert sender.file(sent["id"])["status"] == "processing"
    sender.work()
    row = sender.file(sent["id"])
    assert (row["status"], row["chunks"], row["error"]) == ("indexed", 1, None)
    assert any("thirty days" in text for text in sender.texts("How many days of leave?"))
    assert row.pop("attachments") == []
    assert editor.get(FILES).json()["items"] == [row]
    content = editor.get(f"{FILES}/{sent['id']}/content")
    assert b"".join(content.streaming_content) == NOTE


def test_a_download_can_do_nothing_in_a_browser(editor, sender):
    page = b"<!doctype html><html><body><p>Plain words.</p><script>alert(1)</script></body></html>"
    sent = sender.send(page, title="page", file_name="seite\u00df.html", media_type="text/html")
    answer = editor.get(f"{FILES}/{sent['id']}/content")
    assert answer["Content-Disposition"].startswith("attachment;")
    assert "filename*=utf-8''seite%C3%9F.html" in answer["Content-Disposition"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"].startswith("sandbox")
    assert answer["Content-Length"] == str(len(page))


def test_the_same_title_is_a_new_version_that_answers_when_it_is_searchable(editor, sender):
    first = sender.send(NOTE, title="Leave policy")
    sender.work()
    second = sender.send(NEWER, title="LEAVE  policy".replace("  ", " "))
    assert (second["resource_id"], second["version"]) == (first["resource_id"], 2)
    sender.work(until="publish")
    assert [text for text in sender.texts("How many days of leave?") if "thirty days" in text]
    assert [sender.file(sent["id"])["status"] for sent in (first, second)] == ["indexed", "processing"]
    sender.work()
    answers = sender.texts("How many days of leave?")
    assert [text for text in answers if "thirty-five" in text]
    assert not [text for text in answers if "thirty days" in text]
    assert [sender.file(sent["id"])["status"] for sent in (first, second)] == ["superseded", "indexed"]
    versions = editor.get(f"{FILES}/{first['id']}/versions").json()["items"]
    assert [(row["version"], row["status"], row["is_current"]) for row in versions] == [(2, "indexed", True), (1, "superseded", False)]
    assert [row["id"] for row in editor.get(FILES).json()["items"]] == [second["id"]]
    assert len(editor.get(f"{FILES}?versions=all").json()["items"]) == 2
    assert [row["id"] for row in editor.get(f"{FILES}?status=superseded").json()["items"]] == [first["id"]]
    assert sender.file(first["resource_id"])["id"] == second["id"]
    old = editor.get(f"{FILES}/{first['id']}/content")
    assert b"".join(old.streaming_content) == NOTE


def test_of_two_uploads_of_a_title_the_later_one_answers(sender):
    first, second = sender.send(NOTE, title="Leave"), sender.send(NEWER, title="Leave")
    sender.work()
    assert [sender.file(sent["id"])["status"] for sent in (first, second)] == ["superseded", "indexed"]
    assert Chunk.objects.count() == 1
    assert "thirty-five" in sender.texts("How many days of leave?")[0]


def test_the_same_bytes_again_are_a_version_too(sender):
    first = sender.send(NOTE, title="Leave")
    sender.work()
    second = sender.send(NOTE, title="Leave")
    sender.work()
    assert [sender.file(sent["id"])["status"] for sent in (first, second)] == ["superseded", "indexed"]


def test_without_a_title_every_file_stands_alone(sender):
    sent = [sender.send(content) for content in (NOTE, NEWER)]
    assert len({row["resource_id"] for row in sent}) == 2
    assert [row["title"] for row in sent] == ["unnamed", "unnamed"]


def test_a_form_brings_the_file_s_name(editor, channel):
    part = SimpleUploadedFile("folder\\Leave.md", NOTE, content_type="text/markdown")
    body = {"file": part, "channel": "uploads", "visibility": "organization", "policy": '{"chunking": {"target_tokens": 64}}'}
    answer = editor.post(FILES, body, format="multipart")
    assert answer.status_code == 201, answer.content
    row = answer.json()
    assert (row["title"], row["file_name"], row["visibility"], row["channel_id"]) == (
        "Leave.md",
        "Leave.md",
        "organization",
        channel["id"],
    )
    assert answer["Location"] == f"{FILES}/{row['id']}"
    policy = editor.get(f"{FILES}/{row['id']}/policy").json()
    assert policy["policy"]["chunking"]["target_tokens"] == 64
    assert policy["origins"]["chunking.target_tokens"] == "upload"


def test_the_default_channel_takes_what_names_none(sender, editor, channel):
    assert sender.send(NOTE, channel="", title="x")["channel_id"] == channel["id"]
    editor.put(f"/api/v1/channels/{channel['id']}", {**_body(channel), "is_default": False}, format="json")
    answer = sender.post(NOTE, channel="", title="x")
    assert answer.status_code == 400
    assert "Name a channel" in answer.json()["detail"]


def _body(channel):
    return {name: channel[name] for name in ("name", "knowledge_base_id", "description", "policy", "is_default")}


def test_headers_say_the_same_as_the_query(editor, channel):
    headers = {"X-Lectern-Title": "Urlaub %C3%BC", "X-Lectern-Channel": "Uploads", "X-Lectern-Visibility": "organization"}
    answer = editor.generic("POST", FILES, NOTE, content_type="text/markdown", headers=headers)
    assert answer.status_code == 201, answer.content
    assert (answer.json()["title"], answer.json()["visibility"]) == ("Urlaub \u00fc", "organization")
    bad = editor.generic("POST", FILES, NOTE, content_type="text/markdown", headers={**headers, "X-Lectern-Title": "%FF"})
    assert bad.status_code == 400
    assert bad.json()["errors"][0]["path"] == "title"


def test_what_is_no_text_is_stored(sender, editor):
    picture = sender.send(b"\x89PNG\r\n\x1a\n" + bytes(50), title="logo", media_type="image/png")
    odd = sender.send(bytes(range(256)), title="thing", media_type="application/octet-stream")
    sender.work()
    assert [sender.file(sent["id"])["status"] for sent in (picture, odd)] == ["stored", "stored"]
    assert b"".join(editor.get(f"{FILES}/{odd['id']}/content").streaming_content) == bytes(range(256))


def test_a_picture_in_the_place_of_a_text_ends_its_answers(sender):
    first = sender.send(NOTE, title="Leave")
    sender.work()
    second = sender.send(b"\x89PNG\r\n\x1a\n" + bytes(50), title="Leave", media_type="image/png")
    sender.work()
    assert [sender.file(sent["id"])["status"] for sent in (first, second)] == ["superseded", "stored"]
    assert sender.texts("How many days of leave?") == []


def test_the_policy_of_a_channel_cuts(editor, sender, channel):
    long = b"# Book\n\n" + b"\n\n".join(b"Sentence number %d speaks of wheels and of the axles between them." % n for n in range(60))
    editor.put(f"/api/v1/channels/{channel['id']}", {**_body(channel), "policy": {"chunking": {"target_tokens": 64}}}, format="json")
    small = sender.send(long, title="small")
    large = sender.send(long, title="large", policy={"chunking": {"target_tokens": 200}})
    sender.work()
    assert sender.file(small["id"])["chunks"] > 2 * sender.file(large["id"])["chunks"]


def test_a_run_of_the_channel_takes_everything_in_again(editor, sender, channel, kb_url, work):
    long = b"# Book\n\n" + b"\n\n".join(b"Sentence number %d speaks of wheels and of the axles between them." % n for n in range(60))
    sent = sender.send(long, title="book")
    sender.work()
    before = sender.file(sent["id"])["chunks"]
    run = f"{kb_url}/sources/{channel['source_id']}/run"
    unchanged = work(editor.post(run).json()["run_id"])
    assert unchanged.counters["unchanged"] == 1
    editor.put(f"/api/v1/channels/{channel['id']}", {**_body(channel), "policy": {"chunking": {"target_tokens": 64}}}, format="json")
    assert work(editor.post(run).json()["run_id"]).counters["ingested"] == 1
    assert sender.file(sent["id"])["chunks"] > before
    assert sender.file(sent["id"])["status"] == "indexed"


def test_markdown_that_shall_not_be_kept_is_not(sender):
    sent = sender.send(NOTE, title="Leave", policy={"keep_markdown": False})
    sender.work()
    assert sender.file(sent["id"])["status"] == "indexed"
    assert Document.objects.get(id=sent["resource_id"]).markdown_id is None


def test_deleting_takes_every_version_and_all_answers(editor, sender):
    first = sender.send(NOTE, title="Leave")
    sender.work()
    second = sender.send(NEWER, title="Leave")
    sender.work()
    answer = editor.delete(f"{FILES}/{second['id']}")
    removed = {"resource_deleted": True, "chunks_removed": 1, "restored_file_id": None}
    assert answer.json() == {"status": "deleted", "file_id": second["id"], **removed}
    assert sender.texts("How many days of leave?") == []
    assert File.objects.count() == 0
    assert editor.get(f"{FILES}/{first['id']}").status_code == 404


def test_a_version_that_was_replaced_goes_alone(editor, sender):
    first = sender.send(NOTE, title="Leave")
    sender.work()
    second = sender.send(NEWER, title="Leave")
    refused = editor.delete(f"{FILES}/{first['id']}")
    assert refused.status_code == 409, refused.content  # it still answers
    sender.work()
    assert editor.delete(f"{FILES}/{first['id']}").json()["resource_deleted"] is False
    assert sender.file(second["id"])["status"] == "indexed"


def test_withdrawing_an_upload_leaves_the_version_that_answers(editor, sender):
    first = sender.send(NOTE, title="Leave")
    sender.work()
    second = sender.send(NEWER, title="Leave")
    assert editor.delete(f"{FILES}/{second['id']}").json()["resource_deleted"] is False
    sender.work()
    row = sender.file(first["id"])
    assert (row["status"], row["is_current"], row["version"]) == ("indexed", True, 1)
    assert "thirty days" in sender.texts("How many days of leave?")[0]


@pytest.mark.parametrize("until", ["extract", "embed", "publish"])
def test_a_file_that_is_deleted_while_it_is_processed_never_answers(editor, sender, until):
    sent = sender.send(NOTE, title="Leave")
    sender.work(until=until)
    assert editor.delete(f"{FILES}/{sent['id']}").status_code == 200
    sender.work()
    assert sender.texts("How many days of leave?") == []
    assert Document.objects.count() == 0
    again = sender.send(NEWER, title="Leave")
    sender.work()
    assert sender.file(again["id"])["status"] == "indexed"


def test_the_document_s_deletion_takes_the_versions_along(editor, sender):
    sent = sender.send(NOTE, title="Leave")
    sender.send(NEWER, title="Leave")
    sender.work()
    assert editor.delete(f"/api/v1/documents/{sent['resource_id']}").status_code == 200
    assert File.objects.count() == 0


def test_a_deleted_channel_answers_nothing_and_leaves_nothing(editor, sender, channel):
    from ingestion.housekeeping import clear_removed_sources

    sent = sender.send(NOTE, title="Leave")
    sender.send(NEWER, title="Leave")
    sender.work()
    assert editor.delete(f"/api/v1/channels/{channel['id']}").status_code == 204
    assert sender.texts("How many days of leave?") == []
    assert editor.get(f"{FILES}/{sent['id']}").status_code == 404
    assert editor.get(FILES).json()["items"] == []
    clear_removed_sources()
    assert (File.objects.count(), Document.objects.count(), Chunk.objects.count()) == (0, 0, 0)
