"""What a web server's answer says about the document of its address. Pure: one table, a row for every class of status."""

from dataclasses import dataclass
from enum import StrEnum

PAGES = frozenset(("text/html", "application/xhtml+xml"))
# What no document can be made of, so it is not even stored.
NO_DOCUMENTS = (
    *("image/", "audio/", "video/", "font/", "text/css", "text/javascript", "application/javascript", "application/x-javascript"),
    *("application/rss+xml", "application/atom+xml", "application/zip", "application/gzip", "application/x-tar", "application/x-gzip"),
    *("application/x-bzip2", "application/x-xz", "application/x-7z-compressed", "application/java-archive", "application/wasm"),
    *("application/vnd.debian.binary-package", "application/x-msdownload", "application/x-iso9660-image"),
)
PERMANENT_REDIRECTS = (301, 308)
_TRUST_THE_CONTENT = ("", "application/octet-stream", "binary/octet-stream", "application/force-download")


class Kind(StrEnum):
    """What is done with an answer."""

    PAGE = "page"  # stored, and its links are followed
    FILE = "file"  # stored
    UNCHANGED = "unchanged"
    REDIRECT = "redirect"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Meaning:
    """`reason` is the verdict's code, `text` its sentence; `tries` how often it is asked for before that is the verdict."""

    kind: Kind
    reason: str = ""
    text: str = ""
    tries: int = 1


def meaning_of(*, status: int, media_type: str, location: str, start: bytes, cut: bool, max_bytes: int) -> Meaning:
    """`start` is the beginning of the body: a server that names no type is asked by its content."""
    if status == 304:
        return Meaning(Kind.UNCHANGED)
    if 300 <= status < 400:
        if not location:
            return Meaning(Kind.FAILED, "server_error", f"The server answers {status} and does not say where the page went.")
        return Meaning(Kind.REDIRECT, "redirected", f"Leads to {location}")
    if status in (401, 403, 407):
        return Meaning(Kind.FAILED, "unauthorized", f"The server answers {status}: it does not show this page to Lectern.")
    if status in (408, 425, 429):
        return Meaning(Kind.FAILED, "rate_limited", f"The server answers {status}: it was asked too often. Raise web.request_delay_ms.", 3)
    if status >= 500:
        return Meaning(Kind.FAILED, "server_error", f"The server answers {status}.", 3 if status == 503 else 2)
    if status >= 400:
        return Meaning(Kind.SKIPPED, "gone", f"The server answers {status}: there is no such page.")  # an answer, and no failure of ours
    if not 200 <= status < 300:
        return Meaning(Kind.FAILED, "server_error", f"The server answers {status}, which is no answer to a request for a page.")
    if cut:
        text = f"It is larger than {max_bytes:,} bytes. Raise settings.max_bytes_per_page, or exclude it."
        return Meaning(Kind.FAILED, "too_large", text)
    return _content(media_type, start)


def _content(media_type: str, start: bytes) -> Meaning:
    if not start.strip():
        return Meaning(Kind.SKIPPED, "empty", "The server answers with nothing.")
    if media_type in PAGES or (media_type in _TRUST_THE_CONTENT and _looks_like_a_page(start)):
        return Meaning(Kind.PAGE)
    if media_type.startswith(NO_DOCUMENTS):
        return Meaning(Kind.SKIPPED, "not_a_document", f"It is {media_type}, which is no document.")
    return Meaning(Kind.FILE)


def _looks_like_a_page(start: bytes) -> bool:
    head = start[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<title", b"<meta", b"<h1", b"<div", b"<p>"))
