"""The lines of a PDF page as pdfium gives them: text, where it stands, how large it is. Asked of a few characters of each line only,
because every question goes through ctypes: some 1 µs, of which a page with 50 lines bears hundreds and not thousands."""

import ctypes
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from ingestion.extract.pdf_rtl import has_rtl, mend_rtl
from ingestion.extract.pdf_spaces import with_spaces, words_of
from ingestion.extract.pdf_symbols import SYMBOLS, plain_symbols
from ingestion.extract.pdf_text import clean_line

Box = tuple[float, float, float, float]

# pdfium writes a hyphen that it takes for a word break as one of the first two, and goes on with the next line.
_BREAK = re.compile(r"(?:[\ufffe\x02]|\u00ad(?=[ ]*(?:\r\n|\Z)))[ ]*(?:\r\n)?|\r\n|[\r\n]")
_NAME_BYTES = 128


@dataclass(slots=True)
class Line:
    """`box` is (left, bottom, right, top) in points, turned so that the text runs from left to right; `first` and `end` are pdfium's
    numbers of its characters. `broken`: its last word goes on in the next line. `spaced`: the file has a space at its end. `level`: of a
    heading, from 1. `table`: the text is a whole block of Markdown."""

    text: str
    first: int
    end: int
    box: Box
    size: float
    turn: int = 0
    bold: bool = False
    broken: bool = False
    spaced: bool = False
    level: int = 0
    table: bool = False

    @property
    def width(self) -> float:
        return self.box[2] - self.box[0]

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2


class PageText:
    """One page's text layer, open as long as its page is. Numbers of characters are pdfium's own; it has some that are not in the text."""

    def __init__(self, textpage: pdfium.PdfTextPage) -> None:
        self._textpage = textpage
        self.count = textpage.count_chars()
        self.raw = textpage.get_text_range() if self.count else ""
        self._words = words_of(self.raw)
        self._one_to_one = len(self.raw) == self.count
        self._rect, self._matrix = raw.FS_RECTF(), raw.FS_MATRIX()
        self._edges = tuple(ctypes.c_double() for _ in range(4))
        self._name = ctypes.create_string_buffer(_NAME_BYTES)

    def lines(self) -> list[Line]:
        return [line for start, end, broken in _spans(self.raw) if (line := self._line(start, end, broken=broken)) is not None]

    def part(self, line: Line, first: int, end: int) -> Line | None:
        """The characters `first` to `end` of a line as a line of its own."""
        offset = self._offset(line.first)
        return self._line(offset + first - line.first, offset + end - line.first, broken=line.broken and end == line.end)

    def box(self, char: int) -> Box:
        """Where the ink of a character is, in the page's coordinates."""
        left, right, bottom, top = self._edges
        raw.FPDFText_GetCharBox(self._textpage, char, left, right, bottom, top)
        return left.value, bottom.value, right.value, top.value

    def char(self, number: int) -> str:
        code = raw.FPDFText_GetUnicode(self._textpage, number)
        return chr(code) if 0 < code < 0x110000 else ""

    def rects(self, *, most: int) -> Iterator[Box]:
        """Boxes of pieces of text that stand together, in the order of the text."""
        left, right, bottom, top = self._edges
        for index in range(min(raw.FPDFText_CountRects(self._textpage, 0, -1), most)):
            raw.FPDFText_GetRect(self._textpage, index, left, top, right, bottom)
            yield left.value, bottom.value, right.value, top.value

    def font_name(self, char: int) -> str:
        length = raw.FPDFText_GetFontInfo(self._textpage, char, self._name, _NAME_BYTES, None)
        return self._name.value.decode("utf-8", "replace") if 0 < length <= _NAME_BYTES else ""

    def _line(self, start: int, end: int, *, broken: bool) -> Line | None:
        """Of the raw text from `start` to `end`; None when nothing is visible."""
        piece = self.raw[start:end]
        bare = piece.strip()
        if not bare:
            return None
        start += len(piece) - len(piece.lstrip())
        first, last = self._char(start), self._char(start + len(bare) - 1)
        middle = self._char(start + _middle(bare))
        size = self._size(middle)
        text = self._mended(bare, first, size)
        if not (cleaned := clean_line(text)):
            return None
        turn = self._turn(middle)
        one, other = self._loose(first, turn), self._loose(last, turn)
        box = (min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3]))
        return Line(cleaned, first, last + 1, box, size, turn, self._is_bold(middle), broken, len(piece.rstrip()) < len(piece))

    def _mended(self, text: str, first: int, size: float) -> str:
        text = with_spaces(text, self._words, size=size, gap=lambda index: self.box(first + index)[0] - self.box(first + index - 1)[2])
        if has_rtl(text):
            text = mend_rtl(text, box=lambda index: self.box(first + index))
        if SYMBOLS.search(text):
            text = plain_symbols(text, font=lambda index: self.font_name(first + index))
        return text

    def _char(self, index: int) -> int:
        return index if self._one_to_one else max(raw.FPDFText_GetCharIndexFromTextIndex(self._textpage, index), 0)

    def _offset(self, char: int) -> int:
        return char if self._one_to_one else max(raw.FPDFText_GetTextIndexFromCharIndex(self._textpage, char), 0)

    def _turn(self, char: int) -> int:
        """Quarter turns, clockwise."""
        angle = raw.FPDFText_GetCharAngle(self._textpage, char)
        return round(angle / (math.pi / 2)) % 4 if angle > 0 else 0

    def _loose(self, char: int, turn: int) -> Box:
        rect = self._rect
        raw.FPDFText_GetLooseCharBox(self._textpage, char, rect)
        return upright((rect.left, rect.bottom, rect.right, rect.top), turn)

    def _size(self, char: int) -> float:
        """Of the font, in points on the page."""
        matrix = self._matrix
        raw.FPDFText_GetMatrix(self._textpage, char, matrix)
        return round(raw.FPDFText_GetFontSize(self._textpage, char) * math.hypot(matrix.c, matrix.d), 1)

    def _is_bold(self, char: int) -> bool:
        name = self.font_name(char).lower()
        return "bold" in name or "black" in name or "heavy" in name


def _middle(text: str) -> int:
    """Of the first visible character in the second half: a space may be pdfium's own, without a font."""
    half = len(text) // 2
    return half + len(text) - half - len(text[half:].lstrip())


def upright(box: Box, turn: int) -> Box:
    """The box in coordinates in which text with so many clockwise quarter turns runs from left to right."""
    left, bottom, right, top = box
    match turn:
        case 1:
            return -top, left, -bottom, right
        case 2:
            return -right, -top, -left, -bottom
        case 3:
            return bottom, -right, top, -left
    return box


def _spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether a word is broken there) of each line."""
    start = 0
    for match in _BREAK.finditer(text):
        yield start, match.start(), match[0][0] in "\ufffe\x02\u00ad"
        start = match.end()
    yield start, len(text), False
