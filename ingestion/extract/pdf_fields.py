"""What was filled into a PDF's form and written onto its pages: a viewer shows it as text, but it is in no page's text layer."""

import ctypes

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from ingestion.extract.pdf_lines import Line
from ingestion.extract.pdf_text import clean_line

MAX_ANNOTATIONS = 2_000
MAX_BYTES = 32_768
# Values of buttons are names inside the file, not words.
_BUTTON = "Btn"
_HIDDEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW


def filled_in(page: pdfium.PdfPage) -> Line | None:
    """A list of `name: value` of each field with a value, and of free texts, from the top of the page, as one block."""
    found: list[tuple[float, float, str]] = []
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            if not raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN and (text := _text(annotation)):
                rect = raw.FS_RECTF()
                raw.FPDFAnnot_GetRect(annotation, rect)
                found.append((-rect.top, rect.left, text))
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    if not found:
        return None
    return Line("\n".join(f"- {text}" for _, _, text in sorted(found)), 0, 0, (0.0, 0.0, 0.0, 0.0), 0.0, table=True)


def _text(annotation: ctypes.c_void_p) -> str:
    kind = raw.FPDFAnnot_GetSubtype(annotation)
    if kind == raw.FPDF_ANNOT_FREETEXT:
        return clean_line(_string(annotation, b"Contents").replace("\r", " ").replace("\n", " "))
    if kind != raw.FPDF_ANNOT_WIDGET or _string(annotation, b"FT") == _BUTTON:
        return ""
    value = clean_line(_string(annotation, b"V").replace("\r", " ").replace("\n", " "))
    name = clean_line(_string(annotation, b"TU") or _string(annotation, b"T"))
    return f"{name}: {value}" if name and value else value


def _string(annotation: ctypes.c_void_p, key: bytes) -> str:
    length = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    if not 2 < length <= MAX_BYTES:
        return ""
    buffer = (ctypes.c_ushort * (length // 2 + 1))()
    raw.FPDFAnnot_GetStringValue(annotation, key, buffer, length)
    return bytes(buffer)[: length - 2].decode("utf-16-le", "ignore")
