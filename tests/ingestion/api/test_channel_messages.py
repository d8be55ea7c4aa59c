"""Messages in channels: their attachments are as private as they are, and go with them."""

from email.message import EmailMessage

from kb.models import Document, File
from tests.ingestion.api.channels import FILES


def message() -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Launch", "a@acme.test", "b@acme.test"
    mail.set_content("The plan of the launch is attached to this message.")
    mail.add_attachment(
        b"# Falcon\n\nThe falcon launches on the ninth of March.\n", maintype="text", subtype="markdown", filename="plan.md"
    )
    return mail.as_bytes()


def test_an_attachment_is_its_message_s_owner_s_and_goes_with_it(editor, sender, second_editor):
    sent = sender.send(message(), title="launch.eml", file_name="launch.eml", media_type="message/rfc822")
    sender.work()
    assert sender.file(sent["id"])["status"] == "indexed"
    assert any("ninth of March" in text for text in sender.texts("falcon launch"))
    assert sender.texts("falcon launch", second_editor) == []
    assert editor.delete(f"{FILES}/{sent['id']}").json()["resource_deleted"] is True
    assert sender.texts("falcon launch") == []
    assert (Document.objects.count(), File.objects.count()) == (0, 0)


def test_a_message_that_is_only_stored_from_now_on_loses_its_attachments(sender):
    sender.send(message(), title="launch.eml", file_name="launch.eml", media_type="message/rfc822")
    sender.work()
    second = sender.send(b"\0\1\2", title="launch.eml")
    sender.work()
    assert sender.file(second["id"])["status"] == "stored"
    assert sender.texts("falcon launch") == []
