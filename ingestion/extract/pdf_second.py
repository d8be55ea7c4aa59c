"""The second reader, pypdf: for files that pdfium cannot open, and pages of which it gives nothing. Pure Python, ten pages a second."""

from pathlib import Path

from ingestion.extract.base import MEBIBYTE
from ingestion.extract.pdf_document import needs_password

# Reading more would take longer than a file may.
MAX_FILE_BYTES = 32 * MEBIBYTE
MAX_CONTENT_BYTES = MEBIBYTE


class SecondReader:
    """Opens the file when it is first asked. Whatever fails is no text: pypdf raises anything at all on odd files."""

    def __init__(self, data: Path, *, name: str) -> None:
        self._data = data
        self._name = name
        self._pages: list | None = None

    def __len__(self) -> int:
        """How many pages it knows; 0 when it cannot read the file either. Raises ExtractionError "encrypted"."""
        return len(self._open())

    def page_text(self, index: int) -> str:
        """ "" when there is none."""
        try:
            page = self._open()[index]
            content = page.get_contents()
            if content is None or len(content.get_data()) > MAX_CONTENT_BYTES:
                return ""
            return page.extract_text()
        except MemoryError:
            raise
        except Exception:
            return ""

    def _open(self) -> list:
        if self._pages is None:
            self._pages = self._read()
        return self._pages

    def _read(self) -> list:
        if self._data.stat().st_size > MAX_FILE_BYTES:
            return []
        from pypdf import PasswordType, PdfReader

        try:
            reader = PdfReader(self._data, strict=False)
            locked = reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED
            pages = [] if locked else list(reader.pages)
        except MemoryError:
            raise
        except Exception:
            return []
        if locked:
            raise needs_password(self._name)
        return pages
