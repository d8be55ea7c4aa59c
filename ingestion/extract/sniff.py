"""Which format a file has: its bytes decide, and only among texts does the name choose."""

import re
from dataclasses import dataclass
from pathlib import Path

from config.errors import ExtractionError
from ingestion.extract.byte_order import bom_encoding, unmarked_utf16
from ingestion.extract.containers import ContainerFormat, ole2_format, zip_format
from ingestion.extract.fences import FENCE_LANGUAGES
from ingestion.extract.media import media_format
from ingestion.extract.signatures import BINARY_EXTENSIONS, BINARY_SIGNATURES, OLE2, PARQUET, PDF, RTF, ZIP

HEAD_BYTES = 8_192
READABLE = "PDF, Office, OpenDocument, RTF, EPUB, mail, HTML, Markdown, CSV and text files"

MARKDOWN_EXTENSIONS = frozenset({"md", "markdown", "mdown", "mkd", "mdx"})
_XML_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "image/svg+xml")
# Texts that their name, or the type that they come with, tells apart.
TEXT_FORMATS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("csv", "text/csv", frozenset({"csv", "text/csv", "application/csv"})),
    ("csv", "text/tab-separated-values", frozenset({"tsv", "tab", "psv", "text/tab-separated-values"})),
    ("json", "application/json", frozenset({"json", "jsonl", "ndjson", "geojson", "application/json", "application/x-ndjson"})),
    ("notebook", "application/x-ipynb+json", frozenset({"ipynb", "application/x-ipynb+json"})),
    ("xml", "application/xml", frozenset({"xml", "svg", "rss", "atom", "application/xml", "text/xml", *_XML_TYPES})),
    ("rst", "text/x-rst", frozenset({"rst", "text/x-rst", "text/prs.fallenstein.rst"})),
)
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
HTML_EXTENSIONS = frozenset({"html", "htm", "xhtml"})
_HTML_START = re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL)
MAIL_TYPE = "message/rfc822"
_MAIL_START = re.compile(rb"\s*(?:From [^\n]*\n)?[A-Za-z][A-Za-z0-9-]{0,70}:[ \t\r]")
_MAIL_NAMES = b"from|to|subject|date|message-id|received|return-path|mime-version|content-type|delivered-to|reply-to|dkim-signature"
_MAIL_HEADER = re.compile(rb"^(" + _MAIL_NAMES + rb"):", re.IGNORECASE | re.MULTILINE)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1a\x1b"))


@dataclass(frozen=True, slots=True)
class Kind:
    """`format` is a name of formats.FORMATS."""

    format: str
    media_type: str


PDF_KIND = Kind("pdf", "application/pdf")
EML_KIND = Kind("eml", "message/rfc822")
RTF_KIND = Kind("rtf", "application/rtf")
HTML_KIND = Kind("html", "text/html")
MARKDOWN_KIND = Kind("markdown", "text/markdown")
TEXT_KIND = Kind("text", "text/plain")
XML_KIND = Kind("xml", "application/xml")
PARQUET_KIND = Kind("parquet", "application/vnd.apache.parquet")


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
        return _container_kind(zip_format(path, name=name))
    if head.startswith(OLE2):
        return _container_kind(ole2_format(path, name=name))
    if _is_pdf(head, suffix=suffix):
        return PDF_KIND
    if media := media_format(head, suffix=suffix):
        return Kind(*media)
    if head.lstrip().startswith(RTF):
        return RTF_KIND
    if _is_mail(head, suffix=suffix, declared_type=declared_type):
        return EML_KIND
    if head.startswith(PARQUET):
        return PARQUET_KIND
    if bom_encoding(head) is None and unmarked_utf16(head) is None:
        is_page = _bare(declared_type) in HTML_TYPES or suffix in HTML_EXTENSIONS or bool(_HTML_START.match(head))
        _refuse_binary(head, name=name, is_page=is_page)
    if served:
        return _served_kind(head, suffix=suffix, declared_type=declared_type)
    if suffix in BINARY_EXTENSIONS:
        advice = "Give it the extension of its content, or save it again."
        raise _refused(f"{name} is named .{suffix}, but holds text.", advice, reason="mislabelled")
    return _text_kind(head, suffix=suffix, declared_type=declared_type)


def _text_kind(head: bytes, *, suffix: str, declared_type: str | None) -> Kind:
    declared = _bare(declared_type)
    if suffix in MARKDOWN_EXTENSIONS:
        return MARKDOWN_KIND
    if suffix in HTML_EXTENSIONS or declared in HTML_TYPES:
        return HTML_KIND
    if kind := _named_kind(suffix):
        return kind
    if suffix in FENCE_LANGUAGES or suffix in ("txt", "text"):
        return TEXT_KIND
    if declared == "text/markdown":
        return MARKDOWN_KIND
    if kind := _named_kind(declared):
        return kind
    if _HTML_START.match(head):
        return HTML_KIND
    return XML_KIND if head.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"<?xml") else TEXT_KIND


def _served_kind(head: bytes, *, suffix: str, declared_type: str | None) -> Kind:
    declared = _bare(declared_type)
    if declared in HTML_TYPES or _HTML_START.match(head):
        return HTML_KIND
    if declared == "text/markdown" or suffix in MARKDOWN_EXTENSIONS:
        return MARKDOWN_KIND
    return _named_kind(declared) or _named_kind(suffix) or TEXT_KIND


def _named_kind(word: str) -> Kind | None:
    """Of an extension or a media type; "" is neither."""
    return next((Kind(format, media_type) for format, media_type, words in TEXT_FORMATS if word in words), None)


def _bare(media_type: str | None) -> str:
    return (media_type or "").partition(";")[0].strip().lower()


def _is_mail(head: bytes, *, suffix: str, declared_type: str | None) -> bool:
    """A head of a message, in a file that is said to be one or says nothing: a text may begin with such lines too."""
    if suffix not in ("eml", "") and _bare(declared_type) != MAIL_TYPE:
        return False
    known = {name.lower() for name in _MAIL_HEADER.findall(head.split(b"\r\n\r\n")[0].split(b"\n\n")[0])}
    return bool(_MAIL_START.match(head)) and len(known) >= (1 if suffix == "eml" else 3)


def _is_pdf(head: bytes, *, suffix: str) -> bool:
    # Viewers accept junk before the header; a text that merely quotes it is no PDF.
    if head.lstrip(b"\xef\xbb\xbf\r\n\t \0").startswith(PDF):
        return True
    return PDF in head[:1024] and (suffix == "pdf" or b"\0" in head)


def _refuse_binary(head: bytes, *, name: str, is_page: bool) -> None:
    """A page may hold a NUL here and there: browsers read over it, and so do we."""
    for offset, signature, words in BINARY_SIGNATURES:
        if head.startswith(signature, offset):
            raise _refused(f"{name} is {words}, which is not read.", f"Upload {READABLE}.", reason="unsupported")
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if (b"\0" in head and not is_page) or controls > len(head) // 10:
        advice = f"Upload {READABLE}; save UTF-16 text with a byte order mark."
        raise _refused(f"{name} is a binary file of an unknown kind.", advice, reason="binary")


def _container_kind(row: ContainerFormat) -> Kind:
    return Kind(row.format, row.media_type)


def _refused(happened: str, advice: str, *, reason: str) -> ExtractionError:
    return ExtractionError(happened, advice=advice, reason=reason, retires=True)
