"""PDF: pdfium's text page by page, tables of ruled pages as Markdown, a span for each page."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, PageSpan, Served
from ingestion.extract.pdf_streams import check_streams
from ingestion.extract.pdf_tables import TableReader
from ingestion.extract.pdf_text import clean_lines, join_lines

PAGE_BREAK = "\n\n"
MIN_TEXT_CHARS = 16
METADATA = ("title", "author", "subject", "keywords", "creationdate", "moddate")


class PdfExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        deadline = time.monotonic() + limits.max_seconds
        check_streams(data, name=name, limits=limits)
        document = _open(data, name=name)
        try:
            metadata = {key.lower(): value for key, value in document.get_metadata_dict(skip_empty=True).items()}
            count = len(document)
            parts, spans, cut, warnings = _read_pages(document, data, name=name, limits=limits, deadline=deadline)
            text = "".join(parts)
            if len(text) < MIN_TEXT_CHARS and (not text or _has_pictures(document, last=limits.max_pages)):
                raise _no_text(text, name=name)
        finally:
            document.close()
        return Extracted(
            markdown=text,
            title=_title(metadata.get("title", ""), name=name),
            media_type="application/pdf",
            pages=spans,
            metadata={key: metadata[key] for key in METADATA if key in metadata} | {"pages": count},
            truncated=cut,
            warnings=warnings,
        )


def _open(data: Path, *, name: str) -> pdfium.PdfDocument:
    try:
        document = pdfium.PdfDocument(data)
        pages = len(document)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            advice = "Save it without one and upload it again."
            raise ExtractionError(f"{name} needs a password.", advice=advice, reason="encrypted", retires=True) from error
        raise _damaged(name) from error
    if pages < 1:
        document.close()
        raise _damaged(name)
    return document


def _read_pages(
    document: pdfium.PdfDocument, data: Path, *, name: str, limits: Limits, deadline: float
) -> tuple[list[str], list[PageSpan], bool, list[str]]:
    parts: list[str] = []
    spans: list[PageSpan] = []
    warnings: list[str] = []
    length = unreadable = 0
    count = len(document)
    with TableReader(data, deadline=deadline) as tables:
        for number, text in _pages(document, tables, last=min(count, limits.max_pages)):
            if time.monotonic() > deadline:
                happened = f"{name} took longer than {limits.max_seconds:g} seconds to read."
                raise ExtractionError(happened, advice="Split it and upload the parts.", reason="time_limit", retires=False)
            if text is None:
                unreadable += 1
                continue
            if text:
                lead = PAGE_BREAK if parts else ""
                parts.append(lead + text)
                spans.append(PageSpan(number, length + len(lead), length + len(lead) + len(text)))
                length += len(lead) + len(text)
            if length >= limits.wanted_chars:
                return parts, spans, number < count, warnings
    if unreadable:
        warnings.append(f"{unreadable} of {count} pages are damaged and were left out.")
    if count > limits.max_pages:
        warnings.append(f"Only the first {limits.max_pages} of {count} pages were read.")
    if unreadable == min(count, limits.max_pages):
        raise _damaged(name)
    return parts, spans, count > limits.max_pages, warnings


def _pages(document: pdfium.PdfDocument, tables: TableReader, *, last: int) -> Iterator[tuple[int, str | None]]:
    """(page number, text); None for a page that pdfium cannot load."""
    for index in range(last):
        try:
            page = document[index]
        except pdfium.PdfiumError:
            yield index + 1, None
            continue
        try:
            yield index + 1, _page_text(page, index, tables)
        except pdfium.PdfiumError:
            yield index + 1, None
        finally:
            page.close()


def _page_text(page: pdfium.PdfPage, index: int, tables: TableReader) -> str:
    textpage = page.get_textpage()
    try:
        plain = textpage.get_text_range() if textpage.count_chars() else ""
        if not plain.strip():
            return ""
        return tables.page_markdown(page, textpage, index, plain=plain) or join_lines(clean_lines(plain))
    finally:
        textpage.close()


def _has_pictures(document: pdfium.PdfDocument, *, last: int) -> bool:
    """A stamp or page number over pictures is a scan; one printed word on an empty page is a document."""
    for index in range(min(len(document), last)):
        try:
            if next(document[index].get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]), None) is not None:
                return True
        except pdfium.PdfiumError:
            continue
    return False


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


def _damaged(name: str) -> ExtractionError:
    happened = f"{name} is damaged: no page of it can be opened."
    return ExtractionError(happened, advice="Save it again.", reason="damaged", retires=True)
