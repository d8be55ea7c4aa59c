"""Print off a picture: turned upright, read, and its lines put together to paragraphs."""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

from PIL import Image

from ingestion.recognize.base import Line, PageReader, Recognized

# Sure of this, nobody looks whether the page stands on its head.
READS_WELL = 0.6
_TURNS = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}
# A line shorter than this share of its paragraph's longest ends by intention: an address, a list, verse.
FULL_LINE = 0.7
_HYPHEN_END = re.compile(r"[^\W\d_]-\Z")


def read_print(picture: Image.Image, reader: PageReader) -> Recognized:
    """What is printed on it. Where the engine cannot tell how the page lies and reads badly, the other ways are tried."""
    told = reader.turned(picture)
    best = _read(picture, reader, told or 0)
    if told is None and (best.confidence or 0.0) < READS_WELL:
        for degrees in _TURNS:
            best = max(best, _read(picture, reader, degrees), key=_worth)
    return best


def _worth(found: Recognized) -> float:
    return (found.confidence or 0.0) * len(found.text)


def _read(picture: Image.Image, reader: PageReader, degrees: int) -> Recognized:
    lines = reader.lines(picture.transpose(_TURNS[degrees]) if degrees else picture)
    words = sum(line.words for line in lines)
    confidence = sum(line.confidence * line.words for line in lines) / words if words else None
    return Recognized(
        text=paragraphs(lines),
        engine=reader.name,
        confidence=None if confidence is None else round(confidence, 3),
        rotation=degrees,
    )


def paragraphs(lines: Sequence[Line]) -> str:
    """Lines of one block as running text where they fill it, else each by itself; nothing where no line holds a letter or digit."""
    if not any(character.isalnum() for line in lines for character in line.text):
        return ""
    return "\n\n".join(_flowed([line.text for line in block]) for _, block in groupby(lines, key=lambda line: line.block))


def _flowed(lines: Sequence[str]) -> str:
    width = max(map(len, lines))
    text = lines[0]
    for before, line in pairwise(lines):
        if _HYPHEN_END.search(before) and line[:1].islower():
            text = text[:-1] + line
        else:
            text += (" " if len(before) >= FULL_LINE * width else "\n") + line
    return text
