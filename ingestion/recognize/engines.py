"""Which engine for recognizing print is here. Looked for without loading it: that costs a hundred megabytes and is the child's part."""

import os
import sys
from ctypes.util import find_library
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

INSTALL_PRINT = "An operator installs tesseract-ocr (Debian: apt install tesseract-ocr), or requirements/ocr.txt, for web and workers."
_TESSDATA = (
    *("/usr/share/tesseract-ocr/5/tessdata", "/usr/share/tessdata", "/usr/share/tesseract/tessdata"),
    *("/usr/local/share/tessdata", "/opt/homebrew/share/tessdata"),
)


@dataclass(frozen=True, slots=True)
class PrintEngine:
    """`tesseract` with the library to load and the folder of its languages, or `rapidocr`. The library and not the program: a closed child
    runs no programs, and what it loads counts as its own memory and time."""

    name: str
    library: str = ""
    data: str = ""

    @property
    def folders(self) -> list[Path]:
        """What a child has to read besides Python's own folders."""
        return [Path(self.data)] if self.data else []

    def languages(self) -> list[str]:
        """Those that are installed; `osd` is no language but tells how a page lies."""
        return sorted(path.stem for path in Path(self.data).glob("*.traineddata") if path.stem != "osd") if self.data else []


@cache
def print_engine() -> PrintEngine | None:
    """Tesseract where it is found, else RapidOCR, else None. TESSDATA_PREFIX names the folder of languages where it is an unusual one."""
    library, data = _tesseract_library(), _tessdata()
    if library and data is not None:
        return PrintEngine("tesseract", library, str(data))
    return PrintEngine("rapidocr") if find_spec("rapidocr") and find_spec("onnxruntime") else None


def _tesseract_library() -> str:
    if found := find_library("tesseract"):
        return found
    brewed = Path("/opt/homebrew/lib/libtesseract.5.dylib")
    return str(brewed) if sys.platform == "darwin" and brewed.exists() else ""


def _tessdata() -> Path | None:
    folders = (os.environ.get("TESSDATA_PREFIX", ""), *_TESSDATA)
    return next((Path(folder) for folder in folders if folder and any(Path(folder).glob("*.traineddata"))), None)
