"""One part of a file, in the child: recognized here, or made ready for a model elsewhere."""

import base64
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from config.errors import ExtractionError
from ingestion.recognize.base import PageReader, Recognized
from ingestion.recognize.engines import INSTALL_PRINT, PrintEngine

PRINT_DPI = 300


def perform(path: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """{recognized: fields of Recognized}, or {prepared: the part in base64, media_type} where `request["prepare"]` asks for that.

    `request`: name, part {kind, page, start, end}, engine (fields of PrintEngine) and its languages. Raises ExtractionError."""
    part, name = request["part"], request["name"]
    if part["kind"] in ("picture", "description"):
        return _picture(path, part, request, name=name)
    if part["kind"] == "speech":
        return _speech(path, part, request, name=name)
    if part["kind"] == "page":
        return _page(path, part, request, name=name)
    raise ExtractionError(f"{name} has a part of kind {part['kind']!r}, which nothing here reads.", reason="internal")


def _picture(path: Path, part: Mapping[str, Any], request: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    from ingestion.recognize.pictures import grey_frame, shown_frame
    from ingestion.recognize.printed import read_print

    if request.get("prepare"):
        return _prepared(shown_frame(path, part["page"], name=name), "image/jpeg")
    return {"recognized": read_print(grey_frame(path, part["page"], name=name), _reader_for(request)).to_json()}


def _page(path: Path, part: Mapping[str, Any], request: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    from pypdfium2 import PdfiumError

    from ingestion.extract.pdf_scans import page_picture
    from ingestion.recognize.pictures import MOST_READ
    from ingestion.recognize.printed import read_print

    reader = _reader_for(request)
    try:
        picture = page_picture(path, part["page"], name=name, dpi=PRINT_DPI, max_pixels=MOST_READ)
    except PdfiumError as error:
        happened = f"Page {part['page']} of {name} is damaged and cannot be drawn."
        raise ExtractionError(happened, advice="Save the file again.", reason="damaged", retires=True) from error
    return {"recognized": read_print(picture, reader).to_json()}


def _speech(path: Path, part: Mapping[str, Any], request: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    from ingestion.recognize.sound import is_silent, stretch, wav
    from ingestion.recognize.speech import INSTALL_SPEECH, recognize_speech

    samples, begin = stretch(path, part["start"], part["end"], last=part["last"], name=name)
    if is_silent(samples):
        return {"recognized": Recognized("", engine="silence").to_json()}
    if request.get("prepare"):
        return _prepared(wav(samples), "audio/wav") | {"begin": begin}
    wanted = request["speech"]
    if not wanted["model"]:
        raise ExtractionError("No speech recognition is set up here.", advice=INSTALL_SPEECH, reason="no_engine")
    return {"recognized": recognize_speech(samples, begin, model=wanted["model"], language=wanted["language"]).to_json()}


def _prepared(content: bytes, media_type: str) -> dict[str, Any]:
    return {"prepared": base64.b64encode(content).decode("ascii"), "media_type": media_type}


def _reader_for(request: Mapping[str, Any]) -> PageReader:
    if not request.get("engine"):
        raise ExtractionError("No text recognition is installed here.", advice=INSTALL_PRINT, reason="no_engine")
    return page_reader(PrintEngine(**request["engine"]), tuple(request["languages"]))


@cache
def page_reader(engine: PrintEngine, languages: tuple[str, ...]) -> PageReader:
    """Made once: loading its data costs as much as a page."""
    if engine.name == "tesseract":
        from ingestion.recognize.tesseract import Tesseract

        return Tesseract(engine, languages)
    from ingestion.recognize.rapid import RapidReader

    return RapidReader()
