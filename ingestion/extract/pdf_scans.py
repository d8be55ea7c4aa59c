"""Scanned pages of a PDF: which ones they are, and one of them as a picture."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as raw
from PIL.Image import Image

from ingestion.extract.pdf_document import open_document

# Fewer visible characters than this beside a picture are a stamp or a page number, not the page's text.
MIN_TEXT_CHARS = 16
# Above this share of characters that no font explains, the text layer says nothing.
MAX_UNKNOWN = 0.5
_UNKNOWN = re.compile("[\ufffd\ue000-\uf8ff\x00\x01\x03-\x08\x0e-\x1b]")
# A scan fills its page; a logo does not. Scanners also cut pages into strips, so areas are added up.
MIN_PICTURE_SHARE = 0.1
MAX_OBJECTS = 5_000
FORM_DEPTH = 4

DPI = 200
MAX_PIXELS = 5_000_000
POINTS_PER_INCH = 72


def scanned_pages(data: Path, *, name: str, max_pages: int) -> list[int]:
    """Numbers (from 1) of those pages among the first `max_pages` that hold a raster image and no usable text.

    A page that cannot be loaded is none of them. Raises ExtractionError as `open_document`."""
    with open_document(data, name=name) as document:
        return [index + 1 for index in range(min(len(document), max_pages)) if _is_scan_at(document, index)]


def page_picture(data: Path, page: int, *, name: str, dpi: int = DPI, max_pixels: int = MAX_PIXELS) -> Image:
    """The page (from 1) as a grey picture at `dpi`, or at less, so that it has no more than `max_pixels`; turned as a viewer shows it.

    Raises ExtractionError as `open_document`, PdfiumError for a page that cannot be loaded."""
    with open_document(data, name=name) as document:
        return picture_of(document, page, dpi=dpi, max_pixels=max_pixels)


def picture_of(document: pdfium.PdfDocument, page: int, *, dpi: int = DPI, max_pixels: int = MAX_PIXELS) -> Image:
    """`page_picture` of a document that is open."""
    loaded = document[page - 1]
    try:
        bitmap = loaded.render(scale=_scale(*loaded.get_size(), dpi=dpi, max_pixels=max_pixels), grayscale=True, may_draw_forms=False)
        try:
            return bitmap.to_pil().copy()
        finally:
            bitmap.close()
    finally:
        loaded.close()


def is_scan(page: pdfium.PdfPage, text: str) -> bool:
    """Whether the page with this text layer must be looked at to be read."""
    return not is_usable(text) and _picture_share(page) >= MIN_PICTURE_SHARE


def is_usable(text: str) -> bool:
    visible, known = _counted(text)
    return known >= MIN_TEXT_CHARS and visible - known <= MAX_UNKNOWN * visible


def is_unread(text: str) -> bool:
    """Nothing, or mostly characters that no font explains."""
    visible, known = _counted(text)
    return not known or visible - known > MAX_UNKNOWN * visible


def _counted(text: str) -> tuple[int, int]:
    """(visible characters, known ones among them)."""
    visible = len("".join(text.split()))
    return visible, visible - len(_UNKNOWN.findall(text))


def _is_scan_at(document: pdfium.PdfDocument, index: int) -> bool:
    try:
        page = document[index]
    except pdfium.PdfiumError:
        return False
    try:
        textpage = page.get_textpage()
        try:
            text = textpage.get_text_range() if textpage.count_chars() else ""
        finally:
            textpage.close()
        return is_scan(page, text)
    except pdfium.PdfiumError:
        return False
    finally:
        page.close()


def _picture_share(page: pdfium.PdfPage) -> float:
    """How much of the page its raster images cover; overlaps count twice."""
    width, height = page.get_size()
    areas = (max(0.0, right - left) * max(0.0, top - bottom) for left, bottom, right, top in _picture_boxes(page))
    return sum(areas) / max(width * height, 1.0)


def _picture_boxes(page: pdfium.PdfPage) -> Iterator[tuple[float, float, float, float]]:
    for number, element in enumerate(page.get_objects(max_depth=FORM_DEPTH)):
        if number > MAX_OBJECTS:
            return
        if element.type == raw.FPDF_PAGEOBJ_IMAGE:
            box, form = element.get_bounds(), element.container
            while form is not None:
                box, form = form.get_matrix().on_rect(*box), form.container
            yield box


def _scale(width: float, height: float, *, dpi: int, max_pixels: int) -> float:
    """Pixels per point. pdfium rounds both sides up."""
    wanted = dpi / POINTS_PER_INCH
    width, height = max(width, 1.0), max(height, 1.0)
    most = (math.sqrt((width + height) ** 2 + 4 * width * height * (max_pixels - 1)) - (width + height)) / (2 * width * height)
    return min(wanted, most)
