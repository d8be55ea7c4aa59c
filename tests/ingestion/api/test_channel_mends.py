"""What a channel tells of its files: attachments, states, failed replacements that are deleted, and requests that are refused by name."""

from email.message import EmailMessage

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from kb.models import Dataset, Document
from tests.ingestion.api.channels import FILES

NOTE = b"# Leave\n\nEvery employee of the Kestrel project has thirty days of leave a year.\n"
EMPTY_PDF = b"%PDF-1.4\n%damaged"
ROWS = b"city,people\n" + b"".join(b"Town %d,%d\n" % (number, number * 1000) for number in range(1, 40))


def message() -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Launch", "a@acme.test", "b@acme.test"
    mail.set_content("The plan of the launch is attached to this message.")
    mail.add_attachment(NOTE, maintype="text", subtype="markdown", filename="plan.md")
    mail.add_attachment(ROWS, maintype="text", subtype="csv", filename="towns.csv")
    mail.add_attachment(b"", maintype="text", subtype="plain", filename="empty.txt")
    mail.add_attachment(EMPTY_PDF, maintype="application", subtype="pdf", filename="broken.pdf")
    return mail.as_bytes()


def test_a_message_lists_its_attachments_with_what_became_of_each(sender, second_editor):
    said = {"title": "Launch", "file_name": "launch.eml", "media_type": "message/rfc822"}
    sent = sender.send(message(), **said)
    sender.post(message(), client=second_editor, **said)
    sender.work()
    found = sender.file(sent["id"])["attachments"]
    assert [(each["name"], each["status"]) for each in found] == [
        ("broken.pdf", "failed"),
        ("empty.txt", "failed"),
        ("plan.md", "indexed"),
        ("towns.csv", "indexed"),
    ]
    assert all(each["error"] and each["reason"] for each in found[:2])
    assert sender.file(sender.send(NOTE, title="n")["id"])["attachments"] == []


def test_an_attachment_goes_into_no_dataset_of_the_channel_s_name(editor, sender, channel):
    policy = {"table": {"name": "towns of the channel", "mode": "replace"}}
    body = {"name": "Uploads", "policy": policy, "is_default": True}
    assert editor.put(f"/api/v1/channels/{channel['id']}", body, format="json").status_code == 200
    sender.send(ROWS, title="Towns", file_name="t.csv", media_type="text/csv")
    sender.send(message(), title="Launch", file_name="launch.eml", media_type="message/rfc822")
    sender.work()
    assert sorted(Dataset.objects.values_list("name", flat=True)) == ["towns", "towns_of_the_channel"]


def test_deleting_a_failed_replacement_puts_the_earlier_version_back(sender, editor):
    first = sender.send(NOTE, title="Leave")
    sender.work()
    second = sender.send(EMPTY_PDF, title="Leave", file_name="leave.pdf", media_type="application/pdf")
    sender.work()
    assert (sender.file(second["id"])["status"], sender.texts("days of leave")) == ("failed", [])
    gone = editor.delete(f"{FILES}/{second['id']}").json()
    assert (gone["resource_deleted"], gone["restored_file_id"]) == (False, first["id"])
    assert sender.file(first["id"])["status"] in ("pending", "processing")
    sender.work()
    row = sender.file(first["id"])
    assert (row["status"], row["is_current"], row["media_type"]) == ("indexed", True, "text/markdown")
    assert any("thirty days" in text for text in sender.texts("days of leave"))
    assert editor.get(f"{FILES}/{second['id']}").status_code == 404
    assert editor.delete(f"{FILES}/{first['id']}").json()["resource_deleted"] is True


def test_a_file_whose_rows_answer_in_a_shared_dataset_is_indexed(sender, editor, kb_url):
    for name in ("one", "two"):
        sender.send(ROWS, title=name, file_name=f"{name}.csv", media_type="text/csv", policy={"table": {"name": "towns"}})
        sender.work()
    sender.send(b"\0\1\2", title="picture", file_name="x.bin", media_type="application/x-unknown")
    sender.work()
    listed = {row["title"]: row["status"] for row in editor.get(FILES).json()["items"]}
    assert listed == {"one": "indexed", "two": "indexed", "picture": "stored"}
    documents = {row["name"]: row["state"] for row in editor.get(f"{kb_url}/documents").json()["items"]}
    assert documents == listed
    assert 0 in Document.objects.filter(key__in=("one", "two")).values_list("chunk_count", flat=True)
    assert [row["name"] for row in editor.get(f"{kb_url}/documents?state=stored").json()["items"]] == ["picture"]


def test_what_answers_keeps_its_type_while_another_version_comes_and_goes(sender, editor):
    sender.send(NOTE, title="Leave")
    sender.work()
    second = sender.send(b"plain", title="Leave", media_type="text/plain")

    def types() -> set:
        found = editor.post("/api/v1/search", {"query": "days of leave", "min_score": 0}, format="json").json()
        return {hit["document"]["media_type"] for hit in found["hits"]}

    assert types() == {"text/markdown"}
    editor.delete(f"{FILES}/{second['id']}")
    assert types() == {"text/markdown"}


@pytest.mark.parametrize(
    ("said", "path", "words"),
    [({"visiblity": "organization"}, "visiblity", "is no field"), ({"policy": "nope"}, "policy", "must be JSON")],
)
def test_a_form_is_refused_by_the_name_of_its_field(editor, channel, said, path, words):
    part = SimpleUploadedFile("a.md", NOTE, content_type="application/octet-stream")
    answer = editor.post(FILES, {"file": part, **said}, format="multipart")
    assert answer.status_code == 400
    assert (answer.json()["errors"][0]["path"], words in answer.json()["detail"]) == (path, True)


def test_several_files_in_a_form_are_told_in_a_sentence(editor, channel):
    parts = [SimpleUploadedFile(name, NOTE) for name in ("a.md", "b.md")]
    assert "There are 2 files in the request." in editor.post(FILES, {"file": parts}, format="multipart").json()["detail"]


def test_the_type_of_a_form_s_file_is_known_once_it_was_read(editor, sender, channel):
    part = SimpleUploadedFile("a.md", NOTE, content_type="application/octet-stream")
    sent = editor.post(FILES, {"file": part}, format="multipart").json()
    sender.work()
    assert sender.file(sent["id"])["media_type"] == "text/markdown"


def test_a_channel_that_is_changed_keeps_its_knowledge_base(editor, channel):
    answer = editor.put(f"/api/v1/channels/{channel['id']}", {"name": "Renamed", "is_default": True}, format="json")
    assert (answer.status_code, answer.json()["name"]) == (200, "Renamed")
    assert answer.json()["knowledge_base_id"] == channel["knowledge_base_id"]


def test_the_admin_shows_how_far_files_have_come_and_no_buttons_that_lead_nowhere(sender, channel, db):
    from django.test import Client
    from django.urls import reverse

    from kb.models import User

    sender.send(NOTE, title="Leave")
    sender.send(EMPTY_PDF, title="Broken", file_name="broken.pdf", media_type="application/pdf")
    sender.work()
    operator = Client()
    operator.force_login(User.objects.create_superuser("root", password="a long password of the tests"))
    broken = Document.objects.get(key="Broken")
    for page in ("file", "document"):
        shown = operator.get(reverse(f"admin:kb_{page}_changelist")).content.decode()
        for words in ("indexed", "failed", "private", broken.last_error[:40]):
            assert words in shown
    assert "failed" in operator.get(reverse("admin:kb_file_change", args=[broken.file_id])).content.decode()
    source = operator.get(reverse("admin:kb_source_change", args=[channel["source_id"]])).content.decode()
    assert "/run" in source
    assert "/preview" not in source
    assert "/files" not in source
