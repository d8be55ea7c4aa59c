"""Which format a file has: its bytes decide, and only among texts does the name choose."""

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from config.errors import ExtractionError
from ingestion.extract.fences import FENCE_LANGUAGES
from ingestion.extract.signatures import BINARY_EXTENSIONS, BINARY_SIGNATURES, OLE2, OLE2_ENCRYPTED, PDF, ZIP, ZIP_PARTS

HEAD_BYTES = 8_192
OLE2_SEARCHED_BYTES = 4 * 1024 * 1024
READABLE = "PDF, HTML, Markdown and text files"

BOMS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)

MARKDOWN_EXTENSIONS = frozenset({"md", "markdown", "mdown", "mkd", "mdx"})
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
HTML_EXTENSIONS = frozenset({"html", "htm", "xhtml"})
_HTML_START = re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1a\x1b"))


@dataclass(frozen=True, slots=True)
class Kind:
    """`format` is a name of formats.FORMATS."""

    format: str
    media_type: str


PDF_KIND = Kind("pdf", "application/pdf")
HTML_KIND = Kind("html", "text/html")
MARKDOWN_KIND = Kind("markdown", "text/markdown")
TEXT_KIND = Kind("text", "text/plain")


def extension(name: str) -> str:
    """Lower case, without the dot; "" when there is none."""
    return Path(name).suffix.lower().removeprefix(".")


def sniff(path: Path, *, name: str, declared_type: str | None = None, served: bool = False) -> Kind:
    """Raises ExtractionError, content at fault, for everything that cannot be read. Of what a web server gave, the declared type
    comes before the name: addresses end in .pdf, .md or .php whatever stands there."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise _refused(f"{name} is empty.", "Upload a file with content.", reason="empty")
    suffix = extension(name)
    if head.startswith(ZIP):
        raise _refused(*_zip_refusal(path, name=name), reason="unsupported")
    if head.startswith(OLE2):
        raise _ole2_refusal(path, name=name)
    if _is_pdf(head, suffix=suffix):
        return PDF_KIND
    if bom_encoding(head) is None:
        _refuse_binary(head, name=name)
    if served:
        return _served_kind(head, suffix=suffix, declared_type=declared_type)
    if suffix in BINARY_EXTENSIONS:
        advice = "Give it the extension of its content, or save it again."
        raise _refused(f"{name} is named .{suffix}, but holds text.", advice, reason="mislabelled")
    return _text_kind(head, suffix=suffix, declared_type=declared_type)


def bom_encoding(head: bytes) -> str | None:
    return next((encoding for mark, encoding in BOMS if head.startswith(mark)), None)


def _text_kind(head: bytes, *, suffix: str, declared_type: str | None) -> Kind:
    declared = _bare(declared_type)
    if suffix in MARKDOWN_EXTENSIONS:
        return MARKDOWN_KIND
    if suffix in HTML_EXTENSIONS or declared in HTML_TYPES:
        return HTML_KIND
    if suffix in FENCE_LANGUAGES or suffix in ("txt", "text"):
        return TEXT_KIND
    if declared == "text/markdown":
        return MARKDOWN_KIND
    return HTML_KIND if _HTML_START.match(head) else TEXT_KIND


def _served_kind(head: bytes, *, suffix: str, declared_type: str | None) -> Kind:
    declared = _bare(declared_type)
    if declared in HTML_TYPES or _HTML_START.match(head):
        return HTML_KIND
    return MARKDOWN_KIND if declared == "text/markdown" or suffix in MARKDOWN_EXTENSIONS else TEXT_KIND


def _bare(media_type: str | None) -> str:
    return (media_type or "").partition(";")[0].strip().lower()


def _is_pdf(head: bytes, *, suffix: str) -> bool:
    # Viewers accept junk before the header; a text that merely quotes it is no PDF.
    if head.lstrip(b"\xef\xbb\xbf\r\n\t \0").startswith(PDF):
        return True
    return PDF in head[:1024] and (suffix == "pdf" or b"\0" in head)


def _refuse_binary(head: bytes, *, name: str) -> None:
    for offset, signature, words in BINARY_SIGNATURES:
        if head.startswith(signature, offset):
            raise _refused(f"{name} is {words}, which is not read.", f"Upload {READABLE}.", reason="unsupported")
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if b"\0" in head or controls > len(head) // 10:
        advice = f"Upload {READABLE}; save UTF-16 text with a byte order mark."
        raise _refused(f"{name} is a binary file of an unknown kind.", advice, reason="binary")


def _zip_refusal(path: Path, *, name: str) -> tuple[str, str]:
    """What it is, and what to do."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return f"{name} is a damaged archive.", f"Save it again, or upload {READABLE}."
    for part, words in ZIP_PARTS:
        if any(entry.startswith(part) for entry in names):
            return f"{name} is {words}, which is not read yet.", "Save it as PDF or HTML and upload that."
    return f"{name} is an archive.", "Unpack it and upload the files in it."


def _ole2_refusal(path: Path, *, name: str) -> ExtractionError:
    with path.open("rb") as file:
        encrypted = OLE2_ENCRYPTED in file.read(OLE2_SEARCHED_BYTES)
    if encrypted:
        return _refused(f"{name} needs a password.", "Save it without one and upload it again.", reason="encrypted")
    return _refused(f"{name} is an old Office file.", "Save it as .docx, .xlsx or .pptx.", reason="unsupported")


def _refused(happened: str, advice: str, *, reason: str) -> ExtractionError:
    return ExtractionError(happened, advice=advice, reason=reason, retires=True)
