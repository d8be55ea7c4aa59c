"""Messages as they are sent (.eml), by the standard library's parser."""

import email
import email.utils
from collections.abc import Iterator
from contextlib import suppress
from email.header import decode_header
from email.message import Message
from pathlib import Path

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.encodings import decode
from ingestion.extract.html_fragment import fragment_markdown
from ingestion.extract.mail import Attachment, Mail, better, clean_name, extracted_mail, plain_markdown

MEDIA_TYPE = "message/rfc822"
MAX_DEPTH = 30
PEOPLE = ("From", "To", "Cc", "Reply-To")
# They prove who wrote a message and say nothing themselves.
SIGNATURES = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})
ENCRYPTED = frozenset({"multipart/encrypted", "application/pgp-encrypted"})
SEALED = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_ENDINGS = {"text/plain": ".txt", "text/html": ".html", "text/calendar": ".ics", "image/png": ".png", "image/jpeg": ".jpg",
            "application/pdf": ".pdf"}  # fmt: skip


class EmlExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None, outbox: Path | None = None) -> Extracted:
        message = email.message_from_bytes(data.read_bytes())
        mail = _Reader(name=name, limits=limits).read(message)
        return extracted_mail(mail, name=name, media_type=MEDIA_TYPE, limits=limits, outbox=outbox)


class _Reader:
    def __init__(self, *, name: str, limits: Limits) -> None:
        self._name = name
        self._max_chars = limits.wanted_chars
        self._mail = Mail()

    def read(self, message: Message) -> Mail:
        mail = self._mail
        mail.subject = header(message, "Subject")
        mail.date = _date(header(message, "Date"))
        mail.people = {key: value for key in PEOPLE if (value := header(message, key))}
        mail.message_id = header(message, "Message-ID")[:300]
        mail.body = "\n\n".join(text for text in self._texts(message, 0) if text)
        return mail

    def _texts(self, part: Message, depth: int) -> Iterator[str]:
        """The texts of a part in their order; what is no text of the message becomes an attachment."""
        kind = part.get_content_type()
        if kind in ENCRYPTED or (kind in SEALED and "signed" not in str(part.get_param("smime-type", ""))):
            happened = f"{self._name} is an encrypted message."
            raise ExtractionError(happened, advice="Save it decrypted and upload that.", reason="encrypted", retires=True)
        if kind in SIGNATURES:
            return
        if depth > MAX_DEPTH:
            self._mail.warnings.append("Parts that lie very deep in this message were left out.")
        elif kind == "message/rfc822":
            self._attach_message(part)
        elif part.is_multipart():
            yield from self._several(part, kind, depth)
        elif _is_text(part, kind):
            yield self._text(part, kind)
        elif kind.startswith("image/") and part.get("Content-ID") and part.get_content_disposition() != "attachment":
            self._mail.pictures += 1
        else:
            self._attach(part, kind)

    def _several(self, part: Message, kind: str, depth: int) -> Iterator[str]:
        children = [child for child in part.get_payload() if isinstance(child, Message)]
        if kind == "multipart/alternative":
            yield self._alternative(children, depth)
            return
        for child in children:
            yield from self._texts(child, depth + 1)

    def _alternative(self, children: list[Message], depth: int) -> str:
        """One text in several forms: the plain one is compared with the richest other."""
        plain = rich = ""
        for child in children:
            if child.get_content_type() == "text/calendar":
                continue  # an invitation that the text tells
            text = "\n\n".join(each for each in self._texts(child, depth + 1) if each)
            if child.get_content_type() == "text/plain":
                plain = plain or text
            else:
                rich = text or rich  # the last is the richest
        return better(plain, rich)

    def _text(self, part: Message, kind: str) -> str:
        raw, charset = _payload(part), str(part.get_param("charset", "") or "")
        if kind == "text/html":
            return fragment_markdown(raw, warnings=self._mail.warnings, charset=charset, max_chars=self._max_chars)
        text = decode(raw, declared=(charset,)).text
        if kind == "text/markdown":
            return text.strip()
        if str(part.get_param("format", "")).lower() == "flowed":
            text = _reflowed(text)
        return plain_markdown(text, max_chars=self._max_chars)

    def _attach(self, part: Message, kind: str) -> None:
        number = len(self._mail.attachments) + 1
        name = clean_name(decoded(part.get_filename() or ""), fallback=f"attachment-{number}{_ENDINGS.get(kind, '')}")
        self._mail.attachments.append(Attachment(name, kind, _payload(part)))

    def _attach_message(self, part: Message) -> None:
        inner = part.get_payload()
        message = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], Message) else None
        if message is None:
            self._attach(part, MEDIA_TYPE)
            return
        name = decoded(part.get_filename() or "") or header(message, "Subject")
        name = clean_name(name, fallback=f"message-{len(self._mail.attachments) + 1}").removesuffix(".eml") + ".eml"
        self._mail.attachments.append(Attachment(name, MEDIA_TYPE, message.as_bytes()))


def header(message: Message, name: str) -> str:
    """As a person reads it; "" where there is none."""
    # The parser's own view of a header loses bytes that are not ASCII.
    value = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return decoded(str(value))[:2_000]


def decoded(value: str) -> str:
    """Encoded words, and bytes that stand in a header as they are, as text."""
    parts: list[str] = []
    try:
        pieces = decode_header(value)
    except (ValueError, LookupError, AssertionError):
        pieces = [(value, None)]
    for piece, charset in pieces:
        raw = piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogateescape")
        parts.append(decode(raw, declared=(charset,) if charset and charset != "unknown-8bit" else ()).text)
    return " ".join("".join(parts).split())


def _is_text(part: Message, kind: str) -> bool:
    if part.get_content_disposition() == "attachment" or part.get_filename():
        return False
    return kind in ("text/plain", "text/html", "text/rfc822-headers", "message/delivery-status", "text/enriched", "text/markdown")


def _payload(part: Message) -> bytes:
    """Decoded; what claims an encoding that it has not comes as it is."""
    with suppress(ValueError, AssertionError, LookupError):
        payload = part.get_payload(decode=True)
        return payload if isinstance(payload, bytes) else b""
    return b""


def _reflowed(text: str) -> str:
    """Lines that end in a space go on in the next one (RFC 3676)."""
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and lines[-1].endswith(" ") and lines[-1] != "-- " and not line.startswith(">"):
            lines[-1] += line
        else:
            lines.append(line)
    return "\n".join(lines)


def _date(text: str) -> str:
    try:
        return email.utils.parsedate_to_datetime(text).isoformat(sep=" ")
    except (ValueError, TypeError, IndexError, OverflowError):
        return text[:100]
