"""Attachments of messages are documents of their own, and live as long as their message has them."""

from email.message import EmailMessage
from io import BytesIO

import pytest

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])

RULES = "The oak lectern in the reading room is polished with beeswax every spring.\n" * 3


def message(*attachments: tuple[str, bytes], text: str = "Please read what is attached to this message, all of it.") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Ada <ada@a.example>", "Bob <bob@b.example>", "Rules"
    made.set_content(text)
    for name, content in attachments:
        made.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return made


@pytest.fixture
def documents(editor, kb_url):
    """Name to state, of everything that the knowledge base has."""

    def read() -> dict[str, str]:
        return {row["name"]: row["state"] for row in editor.get(f"{kb_url}/documents?state=all").json()["items"]}

    return read


@pytest.fixture
def verdicts(editor, kb_url):
    def read(run) -> dict[str, tuple[str, str]]:
        rows = editor.get(f"/api/v1/runs/{run.id}/documents").json()["items"]
        return {row["name"]: (row["verdict"], row["reason"] or "") for row in rows}

    return read


def test_an_attachment_is_a_document_with_a_verdict(upload, run_now, documents, verdicts):
    inner = message(("inside.txt", RULES.encode()), text="The message that came before this one, and its words.")
    made = message(("rules.md", RULES.encode()), ("setup.exe", b"MZ\0\0\1\2\3"), ("empty.txt", b""))
    made.add_attachment(inner)
    assert upload(("mail.eml", made.as_bytes())).status_code == 200
    assert verdicts(run_now()) == {
        "mail.eml": ("ingested", ""),
        "mail.eml/rules.md": ("ingested", ""),
        "mail.eml/setup.exe": ("failed", "binary"),
        "mail.eml/empty.txt": ("failed", "empty"),
        "mail.eml/Rules.eml": ("ingested", ""),
        "mail.eml/Rules.eml/inside.txt": ("ingested", ""),
    }
    assert documents()["mail.eml/Rules.eml/inside.txt"] == "indexed"
    second = run_now()
    again = verdicts(second)
    assert (again["mail.eml"], again["mail.eml/rules.md"]) == (("unchanged", ""), ("unchanged", ""))
    # What is no document does not make every run partial; its file goes on saying why.
    assert again["mail.eml/setup.exe"] == ("skipped", "binary")
    assert second.status == "succeeded"
    assert documents()["mail.eml/setup.exe"] == "failed"


def test_attachments_go_with_what_replaces_their_message(upload, run_now, documents):
    upload(("mail.eml", message(("old.txt", RULES.encode()), ("kept.txt", b"Kept: " + RULES.encode())).as_bytes()))
    run_now()
    changed = message(
        ("kept.txt", b"Kept: " + RULES.encode()), ("new.txt", b"New: " + RULES.encode()), text="Another text of the same message."
    )
    upload(("mail.eml", changed.as_bytes()))
    assert "mail.eml/old.txt" in documents()
    run_now()
    assert documents() == dict.fromkeys(("mail.eml", "mail.eml/kept.txt", "mail.eml/new.txt"), "indexed")


def test_attachments_go_with_their_message(editor, source_url, upload, run_now, documents):
    from kb.models import Chunk, File

    upload(("mail.eml", message(("rules.txt", RULES.encode())).as_bytes()), ("other.txt", RULES.encode()))
    run_now()
    files = {row["file_name"]: row["file_id"] for row in editor.get(f"{source_url}/files").json()["items"]}
    assert editor.delete(f"{source_url}/files/{files['mail.eml']}").status_code == 200
    assert documents() == {"other.txt": "indexed"}
    assert File.objects.count() == 1
    assert not Chunk.objects.exclude(document__key="other.txt").exists()


def test_a_message_that_is_refused_takes_its_attachments_along(upload, run_now, documents):
    from kb import blobs
    from kb.models import Document

    upload(("mail.eml", message(("rules.txt", RULES.encode())).as_bytes()))
    run_now()
    document = Document.objects.get(key="mail.eml")
    sealed = b"From: a@a.example\nSubject: x\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nMIAG"
    blob = blobs.store_stream(document.organization_id, BytesIO(sealed))
    type(document.file).objects.filter(id=document.file_id).update(blob=blob, sha256=bytes(blob.sha256))
    run_now()
    assert documents() == {"mail.eml": "failed"}


def test_changed_cutting_keeps_attachments(upload, run_now, documents, editor, kb_url):
    upload(("mail.eml", message(("rules.txt", RULES.encode())).as_bytes()))
    run_now()
    current = editor.get(kb_url).json()
    document = {**current["document"], "chunking": {"strategy": "recursive", "target_tokens": 64}}
    answer = editor.put(kb_url, document, format="json", headers={"If-Match": f'"{current["version"]}"'})
    assert answer.status_code == 200, answer.content
    run_now()
    assert documents() == dict.fromkeys(("mail.eml", "mail.eml/rules.txt"), "indexed")


def test_attachments_of_a_private_message_are_private(sender, viewer, editor):
    from kb.models import Document, File

    made = message(("plan.txt", b"The falcon launches on the ninth of March. " * 5))
    sent = sender.send(made.as_bytes(), title="Plan", file_name="plan.eml", media_type="message/rfc822")
    sender.work()
    assert sender.file(sent["id"])["status"] == "indexed"
    assert any("ninth of March" in text for text in sender.texts("When does the falcon launch?"))
    assert not any("ninth of March" in text for text in sender.texts("When does the falcon launch?", viewer))
    attached = Document.objects.get(part_of__isnull=False)
    assert (attached.key, attached.visibility) == ("Plan/plan.txt", "private")
    assert viewer.get(f"/api/v1/documents/{attached.id}").status_code == 404
    sender.send(message(text="Nothing is attached any more to this message.").as_bytes(), title="Plan", file_name="plan.eml")
    sender.work()
    assert not Document.objects.filter(part_of__isnull=False).exists()
    assert not any("ninth of March" in text for text in sender.texts("When does the falcon launch?"))
    assert editor.delete(f"/api/v1/files/{sent['id']}").status_code in (200, 204)
    assert File.objects.exclude(resource=None).count() == File.objects.count()
