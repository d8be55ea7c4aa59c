"""Files that fail: a sentence, a code, whether trying again may help, and what can be done then."""

import contextlib

import pytest

from config.errors import PermanentProviderError
from ingestion import claims
from ingestion.models import EmbeddedText, IngestionRun
from ingestion.sweeping import sweep
from kb.models import Document, File
from kb.providers.hashing import HashingProvider
from tests.ingestion.api.channels import FILES
from tests.samples.pdfs import scanned_pdf, text_pdf

NOTE = b"# Leave\n\nThirty days of leave a year.\n"


@pytest.mark.parametrize(
    ("content", "name", "reason", "words"),
    [
        (text_pdf(["secret"], password="x"), "plan.pdf", "encrypted", "password"),
        (b" \n\t\n", "blank.txt", "empty", "no text"),
        (b"%PDF-1.7\n%%EOF", "broken.pdf", "damaged", "damaged"),
        (b"Only text.", "text.pdf", "mislabelled", "named .pdf"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old.doc", "", "old.doc"),
    ],
)
def test_what_cannot_be_read_says_why_and_is_for_good(editor, sender, content, name, reason, words):
    sent = sender.send(content, title=name, file_name=name, media_type="application/octet-stream")
    sender.work()
    row = sender.file(sent["id"])
    assert (row["status"], row["retryable"], row["chunks"]) == ("failed", False, 0)
    assert row["reason"] == (reason or row["reason"])
    assert words in row["error"]
    assert row["error"].endswith(".")
    assert row["error"].count(". ") >= 1  # what happened, and what to do
    assert row.pop("attachments") == []
    assert editor.get(f"{FILES}?status=failed").json()["items"] == [row]
    assert editor.delete(f"{FILES}/{sent['id']}").json()["resource_deleted"] is True


def test_a_failure_of_ours_may_be_tried_again(editor, sender, monkeypatch):
    def refuse(*_, **__):
        raise PermanentProviderError("The embedding provider refuses the key. Store a new one.")

    with monkeypatch.context() as patched:
        patched.setattr(HashingProvider, "embed_batch", refuse)
        sent = sender.send(NOTE, title="Leave")
        sender.work()
    row = sender.file(sent["id"])
    assert (row["status"], row["reason"], row["retryable"]) == ("failed", "embedding_failed", True)
    assert "refuses the key" in row["error"]
    answer = editor.post(f"{FILES}/{sent['id']}/retry")
    assert (answer.status_code, answer.json()["status"], answer.json()["error"]) == (202, "pending", None)
    sender.work()
    assert sender.file(sent["id"])["status"] == "indexed"
    again = editor.post(f"{FILES}/{sent['id']}/retry")
    assert again.status_code == 409
    assert "indexed" in again.json()["detail"]
    assert File.objects.count() == 1


def test_a_retry_goes_by_the_policy_as_it_is_now(editor, sender, channel):
    sent = sender.send(b"\0\1\2 odd bytes", title="thing.md", policy={"mode": "text"})
    sender.work()
    assert sender.file(sent["id"])["status"] == "failed"
    body = {name: channel[name] for name in ("name", "knowledge_base_id", "is_default")}
    editor.put(f"/api/v1/channels/{channel['id']}", {**body, "policy": {"mode": "store"}}, format="json")
    second = sender.send(b"\0\1\2 odd bytes", title="thing.md")
    assert second["version"] == 2
    sender.work()
    assert sender.file(second["id"])["status"] == "stored"


def test_a_run_that_was_ended_from_outside_leaves_a_file_that_can_be_tried_again(editor, sender):
    sent = sender.send(NOTE, title="Leave")
    assert claims.cancel(IngestionRun.objects.get(finished_at=None))
    sweep()
    row = sender.file(sent["id"])
    assert (row["status"], row["retryable"]) == ("failed", True)
    assert row["error"]
    assert editor.post(f"{FILES}/{sent['id']}/retry").status_code == 202
    sender.work()
    assert sender.file(sent["id"])["status"] == "indexed"


def test_a_new_version_forgets_the_failure(sender):
    first = sender.send(text_pdf(["secret"], password="x"), title="Plan", media_type="application/pdf")
    sender.work()
    second = sender.send(NOTE, title="Plan")
    assert sender.file(first["id"])["status"] == "superseded"
    assert (second["status"], second["error"]) == ("pending", None)
    sender.work()
    assert sender.file(second["id"])["status"] == "indexed"
    assert Document.objects.get().media_type == "text/markdown"


def test_a_failed_version_over_one_that_answers_can_be_taken_back(editor, sender, monkeypatch):
    """The attempt says nothing of the content here, so the old version went on answering."""
    first = sender.send(NOTE, title="Leave")
    sender.work()
    with monkeypatch.context() as patched:
        patched.setattr(HashingProvider, "embed_batch", lambda *_, **__: 1 / 0)
        second = sender.send(NOTE.replace(b"Thirty", b"Forty"), title="Leave")
        for _ in range(12):
            with contextlib.suppress(ZeroDivisionError):
                sender.work()
            EmbeddedText.objects.update(not_before=None)
    assert sender.file(second["id"])["status"] == "failed"
    assert sender.file(first["id"])["status"] == "indexed"
    assert editor.delete(f"{FILES}/{second['id']}").json()["resource_deleted"] is False
    assert sender.file(first["id"])["is_current"] is True
    assert "Thirty" in sender.texts("leave")[0]


def test_files_of_upload_sources_have_the_same_statuses(editor, source_url, upload, run_now, work):
    (row,) = upload(("a.md", NOTE)).json()["stored"]
    assert (row["status"], row["retryable"]) == ("pending", None)
    run = editor.post(f"{source_url}/run").json()["run_id"]
    work(run, until="embed")
    url = f"{source_url}/files/{row['file_id']}"
    assert editor.get(url).json()["status"] == "processing"
    work(run)
    assert editor.get(url).json()["status"] == "indexed"
    Document.objects.update(last_error="It was too much.", last_reason="memory_limit")
    shown = editor.get(url).json()
    assert (shown["status"], shown["reason"], shown["retryable"]) == ("failed", "memory_limit", True)


def test_a_scan_without_text_recognition_says_so(sender):
    sent = sender.send(scanned_pdf(), title="scan.pdf", media_type="application/pdf", policy={"ocr": "off"})
    sender.work()
    row = sender.file(sent["id"])
    assert (row["status"], row["retryable"]) == ("failed", False)
    assert row["error"]


def test_tables_of_private_files_join_no_other_s_dataset(sender, second_editor, editor):
    rows = b"site,hours\n" + b"".join(b"north,%d\n" % number for number in range(40))
    policy = {"mode": "tabular", "table": {"name": "incidents"}}
    mine = {"media_type": "text/csv", "policy": policy}
    sender.send(rows, title="a.csv", **mine)
    assert sender.post(rows.replace(b"north", b"south"), client=second_editor, title="b.csv", **mine).status_code == 201
    sender.work()
    for client, site, other in ((editor, "north", "south"), (second_editor, "south", "north")):
        (dataset,) = client.get("/api/v1/datasets").json()["items"]
        assert dataset["rows"] == 40
        answer = client.post(f"/api/v1/datasets/{dataset['id']}/query", {"sql": "select distinct site from dataset"}, format="json")
        assert answer.json()["rows"] == [[site]]
        texts = sender.texts("incidents", client)
        assert texts
        assert not any(other in text for text in texts)
