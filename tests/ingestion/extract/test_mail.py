"""Messages, as they are sent and as Outlook saves them: heads, bodies, and what becomes of attachments."""

from collections.abc import Callable
from email.message import EmailMessage, Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path

import pytest

from config.errors import ExtractionError
from ingestion.extract import Extracted, Limits, extract
from ingestion.extract.rtf_html import decompress, encapsulated_html
from tests.samples.messages import message, ole2

HEAD = "# Offer\n\nFrom: Ada <ada@a.example>  \nTo: Bob <bob@b.example>"


def mail(text: str = "Hello.", **headers: str) -> EmailMessage:
    made = EmailMessage()
    for name, value in ({"From": "Ada <ada@a.example>", "To": "Bob <bob@b.example>", "Subject": "Offer"} | headers).items():
        made[name] = value
    made.set_content(text)
    return made


@pytest.fixture
def read_with(tmp_path: Path) -> Callable[..., tuple[Extracted, Path]]:
    """Reads a message with an outbox; what was written stands in the folder."""

    def _read(content: bytes, *, name: str = "a.eml", allowed: int = 1_000_000) -> tuple[Extracted, Path]:
        folder = tmp_path / "outbox"
        folder.mkdir()
        path = tmp_path / "content"
        path.write_bytes(content)
        limits = Limits(max_output_bytes=allowed)
        return extract(path, name=name, declared_type=None, limits=limits, outbox=folder), folder

    return _read


def test_the_head_and_the_text(read):
    made = mail("Line one\nline two\n\n# no heading\n", Date="Tue, 1 Dec 2026 09:30:00 +0100", **{"Message-ID": "<1@a.example>"})
    extracted = read(made.as_bytes(), name="a.eml")
    assert extracted.markdown == f"{HEAD}  \nDate: 2026-12-01 09:30:00+01:00\n\nLine one\nline two\n\n\\# no heading"
    assert (extracted.title, extracted.media_type) == ("Offer", "message/rfc822")
    assert extracted.metadata["message_id"] == "<1@a.example>"


@pytest.mark.parametrize(
    ("name", "kind"), [("a.eml", "message/rfc822"), ("message", "message/rfc822"), ("notes.txt", "text/plain"), ("a.md", "text/markdown")]
)
def test_only_what_may_be_a_message_is_taken_for_one(read, name, kind):
    assert read(mail().as_bytes(), name=name).media_type == kind


def test_headers_in_every_writing(read):
    raw = (
        b"From: =?iso-8859-1?Q?Andr=E9?= <a@a.example>\r\nTo: =?utf-8?B?w5xyc3VsYQ==?=\r\nSubject: Gr\xc3\xbc\xc3\x9fe =?bad?X?y?=\r\n"
        b"Date: not a date\r\nContent-Type: text/plain; charset=koi8-r\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\xf0\xd2\xc9\xd7\xc5\xd4"
    )
    markdown = read(raw, name="a.eml").markdown
    assert "From: André <a@a.example>" in markdown
    assert "To: Ürsula" in markdown
    assert "# Grüße" in markdown
    assert markdown.endswith("Привет")


def test_the_better_of_two_bodies(read):
    made = mail("Prices: see the table.")
    made.add_alternative("<p>Prices:</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>", subtype="html")
    assert "| a | b |" in read(made.as_bytes(), name="a.eml").markdown
    poor = mail("All the words of the message stand in this version of it, and only in this one.")
    poor.add_alternative("<p>Your program cannot show this.</p>", subtype="html")
    assert "only in this one" in read(poor.as_bytes(), name="a.eml").markdown


def test_flowed_text(read):
    raw = b"Subject: x\nFrom: a@a.example\nContent-Type: text/plain; format=flowed\n\nOne sentence over \ntwo lines.\n> quoted\n"
    assert read(raw, name="a.eml").markdown.endswith("One sentence over two lines.\n> quoted")


def test_attachments_become_files_and_pictures_of_the_text_do_not(read_with):
    made = mail()
    made.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="../Angebot für Bob.pdf")
    made.add_attachment("a,b\n1,2", filename="numbers.csv")
    made.add_attachment(b"\x89PNG", maintype="image", subtype="png", disposition="inline", cid="<logo>")
    extracted, folder = read_with(made.as_bytes())
    assert [(file.name, file.media_type, file.kind) for file in extracted.files] == [
        ("Angebot für Bob.pdf", "application/pdf", "attachment"),
        ("numbers.csv", "text/plain", "attachment"),
    ]
    assert (folder / extracted.files[0].path).read_bytes() == b"%PDF-1.7"
    assert "Attachments: Angebot für Bob.pdf, numbers.csv" in extracted.markdown
    assert extracted.metadata["pictures"] == 1


def test_refused_attachments_are_named_with_their_reason(read_with):
    made = mail()
    for name, size in (("empty.bin", 0), ("small.bin", 10), ("large.bin", 2_000)):
        made.add_attachment(b"x" * size, maintype="application", subtype="octet-stream", filename=name)
    extracted, folder = read_with(made.as_bytes(), allowed=1_000)
    refused = {file.name: file.details["reason"] for file in extracted.files if not file.path}
    assert refused == {"empty.bin": "empty", "large.bin": "too_large"}
    assert [path.name for path in folder.iterdir()] == [file.path for file in extracted.files if file.path]


def test_more_attachments_than_are_read(read_with):
    made = mail()
    for number in range(102):
        made.add_attachment(b"x", maintype="application", subtype="octet-stream", filename=f"{number}.bin")
    extracted, folder = read_with(made.as_bytes())
    assert len(list(folder.iterdir())) == 100
    assert [file.details["reason"] for file in extracted.files if not file.path] == ["too_many", "too_many"]


def test_a_message_in_a_message_is_a_file(read_with):
    made = mail()
    made.add_attachment(mail("The first one.", Subject="Before"))
    extracted, folder = read_with(made.as_bytes())
    (file,) = extracted.files
    assert (file.name, file.media_type) == ("Before.eml", "message/rfc822")
    assert b"The first one." in (folder / file.path).read_bytes()
    assert "The first one." not in extracted.markdown


def test_signatures_are_no_attachments_and_sealed_messages_are_refused(read, read_with):
    signed = MIMEMultipart("signed")
    signed.attach(MIMEText("The words."))
    signature = Message()
    signature["Content-Type"] = 'application/pgp-signature; name="signature.asc"'
    signed.attach(signature)
    signed["From"] = "Ada"
    extracted, _ = read_with(signed.as_bytes())
    assert (extracted.files, extracted.markdown) == ([], "From: Ada\n\nThe words.")
    with pytest.raises(ExtractionError, match="encrypted message") as caught:
        read(b"From: a@a.example\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nMIAG", name="a.eml")
    assert (caught.value.reason, caught.value.retires) == ("encrypted", True)


def test_a_thousand_parts_in_each_other_end(sandbox, tmp_path):
    lines = ["From: a@a.example", "Subject: deep"]
    for depth in range(1_000):
        lines += [f'Content-Type: multipart/mixed; boundary="b{depth}"', "", f"--b{depth}"]
    path = tmp_path / "deep.eml"
    path.write_text("\n".join([*lines, "Content-Type: text/plain", "", "deep down"]))
    try:
        reply = sandbox.run({"op": "extract", "path": str(path), "name": "deep.eml"})
        assert "deep" in reply["extracted"]["markdown"]
    except ExtractionError as error:
        assert error.reason == "damaged", error.message  # noqa: PT017 - either is right, a crash is not


OUTLOOK = {0x0037: "Offer", 0x0042: "Ada", 0x5D02: "ada@a.example"}


def test_messages_of_outlook(read_with):
    rows = {0x3701: b"a,b\n1,2", 0x3707: "numbers.csv", 0x370E: "text/csv"}
    tree = message(
        OUTLOOK | {0x1000: "Plain words.", 0x1013: b"<p>Words with <b>weight</b>.</p>"},
        numbers={0x0039: 134_089_326_000_000_000, 0x3FDE: 65001},
        to=[("Bob", "bob@b.example"), ("Cy", "/o=Org/cn=cy")],
        attachments=[rows],
    )
    extracted, folder = read_with(ole2(tree), name="a.msg")
    assert extracted.markdown.split("\n\n") == [
        "# Offer",
        "From: Ada <ada@a.example>  \nTo: Bob <bob@b.example>, Cy  \nDate: 2025-11-29 23:30:00+00:00",
        "Words with **weight**.",
        "Attachments: numbers.csv",
    ]
    assert extracted.media_type == "application/vnd.ms-outlook"
    assert (folder / extracted.files[0].path).read_bytes() == b"a,b\n1,2"


def test_a_message_of_outlook_in_another(read, read_with):
    deepest = message({0x0037: "Deepest", 0x1000: "Of three."}, head=24)
    inner = message({0x0037: "Inner", 0x1000: "# Kept as it is"}, attachments=[{0x3701: deepest}], head=24)
    extracted, folder = read_with(ole2(message(OUTLOOK, attachments=[{0x3701: inner}])), name="a.msg")
    (file,) = extracted.files
    assert file.name == "Inner.eml"
    markdown = read((folder / file.path).read_bytes(), name=file.name).markdown
    assert "Attachments: Deepest.eml" in markdown


def test_a_body_in_rtf(read):
    tags = rb"{\*\htmltag <b>}\htmlrtf\b\htmlrtf0 bold{\*\htmltag </b>}"
    html = rb"{\rtf1\ansi\fromhtml1 {\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 From \'e9l\'e8ve " + tags + b"}}"
    stored = (len(html) + 12).to_bytes(4, "little") + len(html).to_bytes(4, "little") + b"MELA" + bytes(4) + html
    assert read(ole2(message(OUTLOOK | {0x1009: stored})), name="a.msg").markdown.endswith("From élève **bold**")
    own = rb"{\rtf1\ansi\pard Only {\b RTF}.\par}"
    stored = (len(own) + 12).to_bytes(4, "little") + len(own).to_bytes(4, "little") + b"MELA" + bytes(4) + own
    assert read(ole2(message(OUTLOOK | {0x1009: stored})), name="a.msg").markdown.endswith("Only **RTF**.")


def test_packed_rtf():
    # The examples of the specification: text with references into what is known from the beginning, and one that copies itself.
    first = bytes.fromhex("2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0")
    assert decompress(first, limit=1_000) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    second = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")
    assert decompress(second, limit=1_000) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"
    assert decompress(second, limit=10) == b"{\\rtf1 WXY"
    assert decompress(second[:20], limit=1_000) is not None
    assert encapsulated_html(b"{\\rtf1 plain}") is None


@pytest.mark.parametrize("cut", [600, 1_500, 2_500])
def test_damaged_messages_of_outlook_are_refused(read, cut):
    whole = ole2(message(OUTLOOK | {0x1000: "Plain words. " * 500}))
    try:
        assert read(whole[:cut], name="a.msg").markdown
    except ExtractionError as error:
        assert error.retires, error.message  # noqa: PT017 - either is right, another exception is not
