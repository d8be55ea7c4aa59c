"""Messages as Outlook saves them (.msg): properties in an OLE2 container, read with olefile."""

from email.header import Header
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path

import olefile

from config.errors import ExtractionError
from ingestion.extract.archive import damaged
from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.html_fragment import fragment_markdown
from ingestion.extract.mail import Attachment, Mail, better, clean_name, extracted_mail, plain_markdown
from ingestion.extract.msg_properties import Properties, Storage
from ingestion.extract.rtf_html import decompress, encapsulated_html
from ingestion.extract.rtf_reader import RtfReader

MEDIA_TYPE = "application/vnd.ms-outlook"
MAX_NESTING = 5
MAX_ENTRIES = 500
_KINDS = {1: "To", 2: "Cc"}
# Numbers of properties as [MS-OXPROPS] names them.
SUBJECT, BODY, HTML, RTF, SENDER_NAME, SENDER_SMTP, SENDER_ADDRESS = 0x0037, 0x1000, 0x1013, 0x1009, 0x0C1A, 0x5D01, 0x0C1F
SENT_NAME, SENT_SMTP, SUBMITTED, DELIVERED, MESSAGE_ID, CLASS = 0x0042, 0x5D02, 0x0039, 0x0E06, 0x1035, 0x001A
NAME, ADDRESS, SMTP, RECIPIENT_KIND = 0x3001, 0x3003, 0x39FE, 0x0C15
LONG_NAME, SHORT_NAME, DATA, MEDIA, CONTENT_ID, HIDDEN, DISPLAY_NAME = 0x3707, 0x3704, 0x3701, 0x370E, 0x3712, 0x7FFE, 0x3001


class MsgExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None, outbox: Path | None = None) -> Extracted:
        try:
            with olefile.OleFileIO(str(data)) as container:
                storage = Storage(container, name=name, allowed=limits.max_archive_bytes)
                mail = _Reader(limits=limits).read(storage)
        except (OSError, ValueError, IndexError, TypeError, AttributeError, KeyError) as error:
            raise damaged(name) from error  # olefile raises whatever damaged bytes lead to
        return extracted_mail(mail, name=name, media_type=MEDIA_TYPE, limits=limits, outbox=outbox)


class _Reader:
    def __init__(self, *, limits: Limits) -> None:
        self._limits = limits

    def read(self, storage: Storage) -> Mail:
        own = storage.properties()
        if "SMIME" in own.text(CLASS).upper() and "SIGNED" not in own.text(CLASS).upper():
            happened = f"{storage.name} is an encrypted message."
            raise ExtractionError(happened, advice="Save it decrypted and upload that.", reason="encrypted", retires=True)
        mail = Mail(subject=" ".join(own.text(SUBJECT).split()), date=own.time(SUBMITTED) or own.time(DELIVERED))
        mail.message_id = own.text(MESSAGE_ID)[:300]
        mail.people = _people(storage, own)
        mail.body = self._body(own, mail.warnings)
        for number, each in enumerate(storage.below("__attach_version1.0_#", most=MAX_ENTRIES), start=1):
            self._attach(mail, each, number)
        return mail

    def _body(self, own: Properties, warnings: list[str]) -> str:
        most = self._limits.wanted_chars
        plain = plain_markdown(own.text(BODY), max_chars=most)
        html, charset = own.markup(HTML)
        if not html and (packed := own.binary(RTF)):
            rtf = decompress(packed, limit=self._limits.max_archive_bytes)
            inner = encapsulated_html(rtf)
            if inner is not None:
                html, charset = inner.encode("utf-8", "replace"), "utf-8"
            elif not plain and rtf:
                reader = RtfReader(name=own.name, max_chars=most)
                reader.read(rtf)
                plain = reader.markdown
        return better(plain, fragment_markdown(html, warnings=warnings, charset=charset, max_chars=most) if html else "")

    def _attach(self, mail: Mail, storage: Storage, number: int) -> None:
        own = storage.properties()
        fallback = f"attachment-{number}"
        name = clean_name(own.text(LONG_NAME) or own.text(SHORT_NAME) or own.text(DISPLAY_NAME), fallback=fallback)
        message = storage.inside(DATA)
        media_type = own.text(MEDIA) or "application/octet-stream"
        if message is not None:
            if message.depth > MAX_NESTING:
                mail.warnings.append(f"The message {name} lies too deep in this one and was left out.")
                return
            inner = self.read(message)
            title = clean_name(inner.subject or name, fallback=fallback).removesuffix(".msg")
            mail.attachments.append(Attachment(f"{title}.eml", "message/rfc822", _as_eml(inner)))
        elif own.flag(HIDDEN) and own.text(CONTENT_ID):
            mail.pictures += 1
        else:
            mail.attachments.append(Attachment(name, media_type, own.binary(DATA)))


def _people(storage: Storage, own: Properties) -> dict[str, str]:
    address = own.text(SENT_SMTP) or own.text(SENDER_SMTP) or own.text(SENDER_ADDRESS)
    found = {"From": _person(own.text(SENT_NAME) or own.text(SENDER_NAME), address)}
    for each in storage.below("__recip_version1.0_#", most=MAX_ENTRIES):
        recipient = each.properties()
        kind = _KINDS.get(recipient.number(RECIPIENT_KIND))
        person = _person(recipient.text(NAME), recipient.text(SMTP) or recipient.text(ADDRESS))
        if kind and person:
            found[kind] = f"{found[kind]}, {person}" if kind in found else person
    return {key: value[:2_000] for key, value in found.items() if value}


def _person(name: str, address: str) -> str:
    """Addresses inside of an organization are paths that nobody writes to."""
    address = address if "@" in address else ""
    return f"{name} <{address}>" if name and address and name != address else name or address


def _as_eml(mail: Mail) -> bytes:
    """A message inside of another one is no file: it is written as one, its body as it was read."""
    whole = MIMEMultipart()
    for key, value in {**mail.people, "Subject": mail.subject, "Date": mail.date, "Message-ID": mail.message_id}.items():
        if value:
            whole[key] = Header(" ".join(value.split()), "utf-8")
    whole.attach(MIMEText(mail.body, "markdown", "utf-8"))
    for each in mail.attachments:
        kind = "octet-stream" if each.media_type == "message/rfc822" else each.media_type.partition("/")[2] or "octet-stream"
        part = MIMEApplication(each.data, kind)
        part.add_header("Content-Disposition", "attachment", filename=("utf-8", "", each.name))
        whole.attach(part)
    return whole.as_bytes()
