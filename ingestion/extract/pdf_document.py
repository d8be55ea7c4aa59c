"""Opening a PDF by pdfium: the two ways in which that fails, as sentences."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from config.errors import ExtractionError


@contextmanager
def open_document(data: Path, *, name: str) -> Iterator[pdfium.PdfDocument]:
    """The document, closed at the end; an empty password is tried by pdfium itself. Raises ExtractionError "encrypted" or "damaged"."""
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise needs_password(name) from error
        raise damaged(name) from error
    try:
        if len(document) < 1:
            raise damaged(name)
        yield document
    finally:
        document.close()


def needs_password(name: str) -> ExtractionError:
    advice = "Save it without one and upload it again."
    return ExtractionError(f"{name} needs a password.", advice=advice, reason="encrypted", retires=True)


def damaged(name: str) -> ExtractionError:
    happened = f"{name} is damaged: no page of it can be opened."
    return ExtractionError(happened, advice="Save it again.", reason="damaged", retires=True)
