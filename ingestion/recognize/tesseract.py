"""Tesseract by its C interface: in this process, so that no child of ours may start a program, and its memory counts as the child's."""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from PIL import Image

from config.errors import ExtractionError
from ingestion.recognize.base import Line
from ingestion.recognize.engines import INSTALL_PRINT, PrintEngine

LEGACY, LSTM = 0, 1
ORIENTATION_ONLY, WHOLE_PAGE = 0, 3
WORD_LEVEL = "5"
DPI = 300
# Below, Tesseract itself says that it guesses.
SURE_OF_ORIENTATION = 1.0
# Words of a block that it is so unsure of are speckles, lines and pictures.
NOISE_BELOW = 0.4


class Tesseract:
    def __init__(self, engine: PrintEngine, languages: Sequence[str]) -> None:
        self._engine = engine
        self._library = _load(engine.library)
        self.name = f"tesseract {self._library.TessVersion().decode()}"
        self._reader = self._open("+".join(_installed(engine, languages)), LSTM, WHOLE_PAGE)

    @cached_property
    def _orienter(self) -> ctypes.c_void_p | None:
        if not (Path(self._engine.data) / "osd.traineddata").exists():
            return None
        return self._open("osd", LEGACY, ORIENTATION_ONLY)

    def turned(self, picture: Image.Image) -> int | None:
        if self._orienter is None:
            return None
        degrees, sure = ctypes.c_int(), ctypes.c_float()
        script, script_sure = ctypes.c_char_p(), ctypes.c_float()
        self._show(self._orienter, picture)
        told = self._library.TessBaseAPIDetectOrientationScript(
            self._orienter, ctypes.byref(degrees), ctypes.byref(sure), ctypes.byref(script), ctypes.byref(script_sure)
        )
        self._library.TessBaseAPIClear(self._orienter)
        return (360 - degrees.value) % 360 if told and sure.value >= SURE_OF_ORIENTATION else None

    def lines(self, picture: Image.Image) -> list[Line]:
        self._show(self._reader, picture)
        try:
            if self._library.TessBaseAPIRecognize(self._reader, None) != 0:
                return []
            address = self._library.TessBaseAPIGetTsvText(self._reader, 0)
            table = ctypes.string_at(address).decode("utf-8", "replace")
            self._library.TessDeleteText(address)
        finally:
            self._library.TessBaseAPIClear(self._reader)
        return list(_lines(table))

    def _show(self, handle: ctypes.c_void_p, picture: Image.Image) -> None:
        grey = picture if picture.mode == "L" else picture.convert("L")
        self._library.TessBaseAPISetImage(handle, grey.tobytes(), grey.width, grey.height, 1, grey.width)
        self._library.TessBaseAPISetSourceResolution(handle, DPI)

    def _open(self, languages: str, engine: int, mode: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p(self._library.TessBaseAPICreate())
        if self._library.TessBaseAPIInit2(handle, self._engine.data.encode(), languages.encode(), engine) != 0:
            happened = f"The text recognition cannot read its data for {languages} in {self._engine.data}."
            raise ExtractionError(happened, advice="Install the language's data again.", reason="no_engine")
        self._library.TessBaseAPISetPageSegMode(handle, mode)
        return handle


@dataclass(slots=True)
class _Word:
    place: tuple[str, str, str]
    confidence: float
    text: str


def _lines(table: str) -> Iterator[Line]:
    """Of the TSV: level, page, block, paragraph, line, word, box (4), confidence, text."""
    words = [word for row in table.splitlines() if (word := _word(row)) is not None]
    sure: dict[str, list[float]] = {}
    for word in words:
        sure.setdefault(word.place[0], []).append(word.confidence)
    noise = {block for block, found in sure.items() if sum(found) / len(found) < NOISE_BELOW}
    numbers: dict[tuple[str, str], int] = {}
    at = 0
    while at < len(words):
        end = at
        while end < len(words) and words[end].place == words[at].place:
            end += 1
        line, place = words[at:end], words[at].place
        at = end
        if place[0] not in noise:
            text, mean = " ".join(word.text for word in line), sum(word.confidence for word in line) / len(line)
            yield Line(text, numbers.setdefault(place[:2], len(numbers)), mean, len(line))


def _word(row: str) -> _Word | None:
    cells = row.split("\t")
    if len(cells) != 12 or cells[0] != WORD_LEVEL or not cells[11].strip():
        return None
    return _Word((cells[2], cells[3], cells[4]), max(0.0, float(cells[10])) / 100, cells[11].strip())


def _installed(engine: PrintEngine, languages: Sequence[str]) -> list[str]:
    here = engine.languages()
    missing = [language for language in languages if language not in here]
    if missing:
        happened = f"The text recognition has no data for {', '.join(missing)} (LECTERN_OCR_LANGUAGES); it has {', '.join(here) or 'none'}."
        raise ExtractionError(happened, advice=f"Install tesseract-ocr-{missing[0]}, or change the setting.", reason="no_engine")
    return list(languages)


def _load(path: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ExtractionError(f"Tesseract cannot be loaded ({error}).", advice=INSTALL_PRINT, reason="no_engine") from error
    handle, text = ctypes.c_void_p, ctypes.c_char_p
    signatures = {
        "TessVersion": (text, []),
        "TessBaseAPICreate": (handle, []),
        "TessBaseAPIInit2": (ctypes.c_int, [handle, text, text, ctypes.c_int]),
        "TessBaseAPISetPageSegMode": (None, [handle, ctypes.c_int]),
        "TessBaseAPISetImage": (None, [handle, text, *[ctypes.c_int] * 4]),
        "TessBaseAPISetSourceResolution": (None, [handle, ctypes.c_int]),
        "TessBaseAPIRecognize": (ctypes.c_int, [handle, handle]),
        "TessBaseAPIGetTsvText": (handle, [handle, ctypes.c_int]),
        "TessBaseAPIDetectOrientationScript": (ctypes.c_int, [handle] * 5),
        "TessBaseAPIClear": (None, [handle]),
        "TessDeleteText": (None, [handle]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
