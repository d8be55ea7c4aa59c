"""What messages of every kind have in common: a head, the better one of two bodies, and attachments, which become documents."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ingestion.extract.base import Extracted, ExtractedFile, Limits
from ingestion.extract.blocks import BlockWriter

MAX_ATTACHMENTS = 100
# A version in HTML that has fewer words than this share of the plain one is a notice that it cannot be shown.
LEAST_SHARE = 0.6
_WORD = re.compile(r"\w+")
_BREAKS = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_UNNAMED = re.compile(r"[\x00-\x1f\x7f/\\]+")


@dataclass(frozen=True, slots=True)
class Attachment:
    name: str
    media_type: str
    data: bytes


@dataclass(slots=True)
class Mail:
    """`people` has the lines of the head in their order ("From", "To"…); `body` is Markdown; `pictures` counts those in the text."""

    subject: str = ""
    date: str = ""
    people: dict[str, str] = field(default_factory=dict)
    message_id: str = ""
    body: str = ""
    attachments: list[Attachment] = field(default_factory=list)
    pictures: int = 0
    warnings: list[str] = field(default_factory=list)


def extracted_mail(mail: Mail, *, name: str, media_type: str, limits: Limits, outbox: Path | None) -> Extracted:
    """The message as a document; its attachments in the outbox, where one is given. None is lost in silence: what is not written there
    is named with the reason."""
    out = BlockWriter(max_chars=limits.wanted_chars)
    out.heading(mail.subject, level=1)
    head = {**mail.people, **({"Date": mail.date} if mail.date else {})}
    out.markup("\n".join(f"{key}: {value}  " for key, value in head.items() if value).rstrip())
    out.markup(mail.body)
    if mail.attachments:
        out.paragraph(f"Attachments: {', '.join(each.name for each in mail.attachments)}")
    metadata: dict[str, object] = {key.lower(): value for key, value in head.items() if value}
    metadata |= {"subject": mail.subject, "message_id": mail.message_id, "pictures": mail.pictures}
    metadata["attachments"] = [each.name for each in mail.attachments[:MAX_ATTACHMENTS]]
    return Extracted(
        markdown=out.markdown,
        title=mail.subject or Path(name).stem,
        media_type=media_type,
        metadata={key: value for key, value in metadata.items() if value},
        truncated=False,
        warnings=[*out.warnings, *mail.warnings],
        files=_written(mail.attachments, outbox=outbox, limits=limits) if outbox is not None else [],
    )


def better(plain: str, html: str) -> str:
    """Of two versions of a text the one in HTML, as Markdown, which keeps links and tables; unless it says less."""
    if len(_WORD.findall(html)) < LEAST_SHARE * len(_WORD.findall(plain)):
        return plain
    return html or plain


def plain_markdown(text: str, *, max_chars: int) -> str:
    """Lines as they are; what only looks like Markdown stays text."""
    out = BlockWriter(max_chars=max_chars)
    for block in _BREAKS.split(text.replace("\r\n", "\n").replace("\r", "\n")):
        if out.full:
            break
        out.paragraph(block.strip("\n"))
    return out.markdown


def clean_name(name: str, *, fallback: str) -> str:
    """A file's name as people know it: no folders, no control characters."""
    return " ".join(_UNNAMED.sub(" ", name).split())[-200:].strip(". ") or fallback


def _written(attachments: Sequence[Attachment], *, outbox: Path, limits: Limits) -> list[ExtractedFile]:
    left = limits.max_output_bytes
    files: list[ExtractedFile] = []
    for number, each in enumerate(attachments, start=1):
        path = f"attachment-{number}"
        if number > MAX_ATTACHMENTS:
            refusal = _refusal(
                "too_many", f"Only the first {MAX_ATTACHMENTS} attachments of a message are read. Upload {each.name} by itself."
            )
        elif not each.data:
            refusal = _refusal("empty", f"{each.name} is empty.")
        elif len(each.data) > left:
            refusal = _refusal("too_large", f"The attachments of this message are too large together. Upload {each.name} by itself.")
        else:
            left -= len(each.data)
            (outbox / path).write_bytes(each.data)
            refusal = None
        files.append(
            ExtractedFile(
                name=each.name,
                path="" if refusal else path,
                media_type=each.media_type,
                kind="attachment",
                details=refusal or {"size": len(each.data)},
            )
        )
    return files


def _refusal(reason: str, error: str) -> dict[str, str]:
    return {"reason": reason, "error": error}
