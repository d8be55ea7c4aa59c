"""PDF to Markdown, page by page: pdfium's lines in reading order, ruled tables, headings, no running headers, a span for each page.

Pages are read one after the other and closed; what is kept of them is their lines. Then the document is known as a whole: what comes
again on every page, which size its text has, which words it knows."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, PageSpan, Part, Served
from ingestion.extract.image import refuse_pictures
from ingestion.extract.pdf_document import damaged, open_document
from ingestion.extract.pdf_fields import filled_in
from ingestion.extract.pdf_headings import Entry, mark_headings, outline
from ingestion.extract.pdf_lines import Line, PageText
from ingestion.extract.pdf_order import in_reading_order
from ingestion.extract.pdf_paragraphs import join_paragraphs, mend_page_breaks, vocabulary
from ingestion.extract.pdf_repair import repaired
from ingestion.extract.pdf_running import without_running
from ingestion.extract.pdf_scans import MIN_TEXT_CHARS, is_scan, is_unread, is_usable
from ingestion.extract.pdf_second import SecondReader
from ingestion.extract.pdf_streams import check_streams
from ingestion.extract.pdf_tables import TableReader
from ingestion.extract.pdf_text import clean_lines, join_lines

PAGE_BREAK = "\n\n"
_NO_TITLE = re.compile(r"(?:microsoft word\b|untitled|powerpoint presentation)|(?:title|\(anonymous\)|\(unspecified\))\Z", re.IGNORECASE)
METADATA = ("title", "author", "subject", "keywords", "creationdate", "moddate")


@dataclass(slots=True)
class _Page:
    """`number` from 1. `plain`: the text where only the second reader gave one."""

    number: int
    lines: list[Line] = field(default_factory=list)
    plain: str = ""
    scan: bool = False
    damaged: bool = False

    @property
    def length(self) -> int:
        return len(self.plain) + sum(len(line.text) + 1 for line in self.lines)


@dataclass(slots=True)
class _Document:
    pages: list[_Page]
    count: int
    cut: bool
    metadata: dict[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    mended: bool = False


class PdfExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        check_streams(data, name=name, limits=limits)
        document = _read(data, name=name, limits=limits)
        text, spans = _assembled(document)
        # Text recognition opens the file by itself, and a file that had to be mended does not open.
        scans = [page.number for page in document.pages if page.scan and not document.mended]
        recognized = bool(scans) and limits.ocr == "auto"
        if not recognized and len(text) < MIN_TEXT_CHARS and (not text or scans):
            raise _no_text(text, name=name, scans=scans, limits=limits)
        return Extracted(
            markdown=text,
            title=_title(document.metadata.get("title", ""), name=name),
            media_type="application/pdf",
            pages=spans,
            metadata=_metadata(document.metadata, pages=document.count, scans=scans),
            truncated=document.cut,
            warnings=_warnings(document, scans=[] if recognized else scans, limits=limits),
            parts=_parts(text, spans, scans) if recognized else [],
        )


def _parts(text: str, spans: list[PageSpan], scans: list[int]) -> list[Part]:
    """Every page that has something, in order; what a scan had of text is a stamp, and is recognized with the rest."""
    known = {span.page: text[span.start : span.end] for span in spans}
    return [Part("page", page=n, text=None if n in scans else known[n]) for n in sorted({*known, *scans})]


def _read(data: Path, *, name: str, limits: Limits) -> _Document:
    """By pdfium; if that opens no page, by pdfium with a new page tree, then by pypdf. Raises ExtractionError."""
    deadline = time.monotonic() + limits.max_seconds
    second = SecondReader(data, name=name)
    readers = (
        lambda: _by_first(data, second, name=name, limits=limits, deadline=deadline),
        lambda: _by_first(repaired(data), second, name=name, limits=limits, deadline=deadline, mended=True),
        lambda: _by_second(second, name=name, limits=limits, deadline=deadline),
    )
    for reader in readers:
        try:
            document = reader()
        except ExtractionError as error:
            if error.reason != "damaged":
                raise
            continue
        if any(page.length for page in document.pages) or not (document.mended or all(page.damaged for page in document.pages)):
            return document
    raise damaged(name)


def _by_first(
    data: Path | bytes | None, second: SecondReader, *, name: str, limits: Limits, deadline: float, mended: bool = False
) -> _Document:
    if data is None:
        raise damaged(name)
    with open_document(data, name=name) as opened:
        count = len(opened)
        pages = list(_until(_pages(opened, second, limits=limits), name=name, limits=limits, deadline=deadline))
        entries = outline(opened) if limits.stop_after_chars is None else []
        metadata = {key.lower(): value for key, value in opened.get_metadata_dict(skip_empty=True).items()}
    return _Document(pages, count, len(pages) < count, metadata, entries, mended)


def _by_second(second: SecondReader, *, name: str, limits: Limits, deadline: float) -> _Document:
    count = len(second)
    plain = (_Page(index + 1, plain=_plain(second, index)) for index in range(min(count, limits.max_pages)))
    pages = list(_until(plain, name=name, limits=limits, deadline=deadline))
    return _Document(pages, count, len(pages) < count, mended=True)


def _until(pages: Iterator[_Page], *, name: str, limits: Limits, deadline: float) -> Iterator[_Page]:
    """The pages until there is enough text. Raises ExtractionError when the time is over."""
    length = 0
    for page in pages:
        if time.monotonic() > deadline:
            happened = f"{name} took longer than {limits.max_seconds:g} seconds to read."
            raise ExtractionError(happened, advice="Split it and upload the parts.", reason="time_limit", retires=False)
        yield page
        length += page.length
        if length >= limits.wanted_chars or (page.scan and limits.ocr == "auto" and limits.stop_after_chars is not None):
            return


def _pages(document: pdfium.PdfDocument, second: SecondReader, *, limits: Limits) -> Iterator[_Page]:
    tables = TableReader(seconds=limits.max_seconds)
    for index in range(min(len(document), limits.max_pages)):
        try:
            page = document[index]
        except pdfium.PdfiumError:
            yield _Page(index + 1, damaged=True)
            continue
        try:
            yield _read_page(page, index, tables, second)
        except pdfium.PdfiumError:
            yield _Page(index + 1, damaged=True)
        finally:
            page.close()


def _read_page(page: pdfium.PdfPage, index: int, tables: TableReader, second: SecondReader) -> _Page:
    textpage = page.get_textpage()
    try:
        text = PageText(textpage)
        if not is_usable(text.raw):
            if is_unread(text.raw) and _has_text(page) and is_usable(plain := _plain(second, index)):
                return _Page(index + 1, plain=plain)
            if is_scan(page, text.raw):
                return _Page(index + 1, text.lines(), scan=True)
        lines = in_reading_order(text.lines(), text)
        lines = tables.with_tables(lines, page, text)
        return _Page(index + 1, lines if (filled := filled_in(page)) is None else [*lines, filled])
    finally:
        textpage.close()


def _has_text(page: pdfium.PdfPage) -> bool:
    """Whether something is written there, be it in letters that pdfium does not know."""
    return any(element.type == raw.FPDF_PAGEOBJ_TEXT for element, _ in zip(page.get_objects(max_depth=2), range(1_000), strict=False))


def _plain(second: SecondReader, index: int) -> str:
    return join_lines(clean_lines(second.page_text(index)))


def _assembled(document: _Document) -> tuple[str, list[PageSpan]]:
    """The Markdown of all pages, and where in it each page with text is."""
    pages = document.pages
    for page, lines in zip(pages, without_running([page.lines for page in pages]), strict=True):
        page.lines = lines
    known = vocabulary(line for page in pages for line in page.lines)
    mend_page_breaks([page.lines for page in pages], known)
    mark_headings([(page.number - 1, page.lines) for page in pages], document.entries)
    parts: list[str] = []
    spans: list[PageSpan] = []
    length = 0
    for page in pages:
        text = page.plain or join_paragraphs(page.lines, known)
        if not text:
            continue
        lead = PAGE_BREAK if parts else ""
        parts.append(lead + text)
        start = length + len(lead)
        length = start + len(text)
        spans.append(PageSpan(page.number, start, length))
    return "".join(parts), spans


def _warnings(document: _Document, *, scans: list[int], limits: Limits) -> list[str]:
    count, warnings = document.count, []
    if document.mended:
        warnings.append("The file is damaged: what could be found of it was read, parts may be missing.")
    if unreadable := sum(page.damaged for page in document.pages):
        warnings.append(f"{unreadable} of {count} pages are damaged and were left out.")
    if scans:
        warnings.append(f"{len(scans)} of {count} pages are pictures without text.")
    if len(document.pages) == limits.max_pages < count:
        warnings.append(f"Only the first {limits.max_pages} of {count} pages were read.")
    return warnings


def _metadata(found: dict[str, str], *, pages: int, scans: list[int]) -> dict[str, Any]:
    known = {key: found[key] for key in METADATA if key in found and not _NO_TITLE.match(found[key])}
    return known | {"pages": pages} | ({"scanned_pages": scans} if scans else {})


def _title(value: Any, *, name: str) -> str:
    """Programs write their own names and file names into the title: those say less than the name does."""
    title = " ".join(str(value).split())
    return Path(name).stem if not title or _NO_TITLE.match(title) else title


def _no_text(text: str, *, name: str, scans: list[int], limits: Limits) -> ExtractionError:
    if scans:
        refuse_pictures(f"{name} is a scan", limits=limits)
    happened = f"{name} holds almost no text ({len(text.strip())} characters)." if text.strip() else f"{name} holds no text."
    return ExtractionError(happened, advice="Upload a version with text.", reason="no_text", retires=True)
