"""Right-to-left text of pdfium, mended: it writes what is seen from right to left, also inside a glyph that stands for two letters."""

import re
from collections.abc import Callable

_RTL = re.compile(r"[\u0590-\u08ff]")
# Alef before lam where one ligature shows lam-alef: the two came from one glyph, which pdfium turned round with the rest.
_TURNED = re.compile("[\u0622\u0623\u0625\u0627]\u0644")
# A vowel mark that stands for itself: it belongs to the letter that follows in the text, and the space is no space.
_LOOSE_MARK = re.compile("(?<=[\u0620-\u064a]) ([\u064b-\u0652\u0670]+)([\u0620-\u064a])")

Box = tuple[float, float, float, float]


def has_rtl(text: str) -> bool:
    return _RTL.search(text) is not None


def mend_rtl(text: str, *, box: Callable[[int], Box]) -> str:
    """`box(index)` is where the character stands on the page."""
    for match in _TURNED.finditer(text):
        at = match.start()
        if box(at) == box(at + 1):
            text = text[:at] + match[0][::-1] + text[at + 2 :]
    return _LOOSE_MARK.sub(r"\2\1", text)
