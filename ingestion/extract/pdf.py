"""PDF: pdfium's text page by page, tables of ruled pages as Markdown, a span for each page."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, PageSpan, Served
from ingestion.extract.pdf_document import damaged, open_document
from ingestion.extract.pdf_scans import MIN_TEXT_CHARS, is_scan
from ingestion.extract.pdf_streams import check_streams
from ingestion.extract.pdf_tables import TableReader
from ingestion.extract.pdf_text import clean_lines, join_lines

PAGE_BREAK = "\n\n"
METADATA = ("title", "author", "subject", "keywords", "creationdate", "moddate")


class PdfExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        deadline = time.monotonic() + limits.max_seconds
        check_streams(data, name=name, limits=limits)
        with open_document(data, name=name) as document:
            metadata = {key.lower(): value for key, value in document.get_metadata_dict(skip_empty=True).items()}
            count = len(document)
            read = _read_pages(document, data, name=name, limits=limits, deadline=deadline)
        text = "".join(read.parts)
        if len(text) < MIN_TEXT_CHARS and (not text or read.scans):
            raise _no_text(text, name=name)
        return Extracted(
            markdown=text,
            title=_title(metadata.get("title", ""), name=name),
            media_type="application/pdf",
            pages=read.spans,
            metadata=_metadata(metadata, pages=count, scans=read.scans),
            truncated=read.cut,
            warnings=read.warnings,
        )


@dataclass(slots=True)
class _Read:
    parts: list[str] = field(default_factory=list)
    spans: list[PageSpan] = field(default_factory=list)
    scans: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    length: int = 0
    cut: bool = False

    def add(self, number: int, text: str) -> None:
        lead = PAGE_BREAK if self.parts else ""
        self.parts.append(lead + text)
        start = self.length + len(lead)
        self.length = start + len(text)
        self.spans.append(PageSpan(number, start, self.length))


def _read_pages(document: pdfium.PdfDocument, data: Path, *, name: str, limits: Limits, deadline: float) -> _Read:
    read = _Read()
    unreadable = 0
    count = len(document)
    last = min(count, limits.max_pages)
    with TableReader(data, deadline=deadline) as tables:
        for number, page in _pages(document, tables, last=last):
            if time.monotonic() > deadline:
                happened = f"{name} took longer than {limits.max_seconds:g} seconds to read."
                raise ExtractionError(happened, advice="Split it and upload the parts.", reason="time_limit", retires=False)
            if page is None:
                unreadable += 1
                continue
            if page.scan:
                read.scans.append(number)
            if page.text:
                read.add(number, page.text)
            if read.length >= limits.wanted_chars:
                read.cut = number < count
                return read
    if unreadable == last:
        raise damaged(name)
    read.cut = count > last
    if unreadable:
        read.warnings.append(f"{unreadable} of {count} pages are damaged and were left out.")
    if read.scans:
        read.warnings.append(f"{len(read.scans)} of {count} pages are pictures without text.")
    if read.cut:
        read.warnings.append(f"Only the first {last} of {count} pages were read.")
    return read


@dataclass(frozen=True, slots=True)
class _Page:
    text: str
    scan: bool


def _pages(document: pdfium.PdfDocument, tables: TableReader, *, last: int) -> Iterator[tuple[int, _Page | None]]:
    """(page number, page); None for a page that pdfium cannot load."""
    for index in range(last):
        try:
            page = document[index]
        except pdfium.PdfiumError:
            yield index + 1, None
            continue
        try:
            yield index + 1, _read_page(page, index, tables)
        except pdfium.PdfiumError:
            yield index + 1, None
        finally:
            page.close()


def _read_page(page: pdfium.PdfPage, index: int, tables: TableReader) -> _Page:
    textpage = page.get_textpage()
    try:
        plain = textpage.get_text_range() if textpage.count_chars() else ""
        if is_scan(page, plain):
            return _Page(join_lines(clean_lines(plain)), True)
        return _Page(tables.page_markdown(page, textpage, index, plain=plain) or join_lines(clean_lines(plain)), False)
    finally:
        textpage.close()


def _metadata(found: dict[str, str], *, pages: int, scans: list[int]) -> dict[str, Any]:
    return {key: found[key] for key in METADATA if key in found} | {"pages": pages} | ({"scanned_pages": scans} if scans else {})


def _title(value: Any, *, name: str) -> str:
    """Programs write their own names and file names into the title: those say less than the name does."""
    title = " ".join(str(value).split())
    useless = not title or title.lower().startswith(("microsoft word", "untitled", "powerpoint presentation")) or title.lower() == "title"
    return Path(name).stem if useless else title


def _no_text(text: str, *, name: str) -> ExtractionError:
    if text.strip():
        happened = f"{name} holds almost no text ({len(text.strip())} characters)."
        return ExtractionError(happened, advice="If it is a scan, run text recognition on it first.", reason="no_text", retires=True)
    happened = f"{name} has no text layer: it is a scan or holds only pictures."
    return ExtractionError(happened, advice="Run text recognition on it first.", reason="no_text", retires=True)
