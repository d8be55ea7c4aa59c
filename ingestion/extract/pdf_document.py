"""Opening a PDF by pdfium: the two ways in which that fails, as sentences."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from config.errors import ExtractionError


@contextmanager
def open_document(data: Path | bytes, *, name: str) -> Iterator[pdfium.PdfDocument]:
    """The document, closed at the end; an empty password is tried by pdfium itself. Raises ExtractionError "encrypted" or "damaged"."""
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        # It calls a file without a catalog a matter of security as well, and of some files says what it said of the one before.
        if getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY) and _says_encrypted(data):
            raise needs_password(name) from error
        raise damaged(name) from error
    try:
        if len(document) < 1:
            raise damaged(name)
        yield document
    finally:
        document.close()


def _says_encrypted(data: Path | bytes) -> bool:
    if isinstance(data, bytes):
        return b"/Encrypt" in data
    with data.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"/Encrypt") >= 0


def needs_password(name: str) -> ExtractionError:
    advice = "Save it without one and upload it again."
    return ExtractionError(f"{name} needs a password.", advice=advice, reason="encrypted", retires=True)


def damaged(name: str) -> ExtractionError:
    happened = f"{name} is damaged: no page of it can be opened."
    return ExtractionError(happened, advice="Save it again.", reason="damaged", retires=True)
