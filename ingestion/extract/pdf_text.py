"""The text of a page as pdfium gives it, line by line, to paragraphs."""

import re
from collections.abc import Sequence

# A line this full, as a share of its neighbours' width, goes on in the next one.
FULL_LINE = 0.72
MIN_WIDTH = 24
NEIGHBOURS = 4

# pdfium writes a hyphen that it takes for a word break as one of these.
_SOFT_BREAK = re.compile(r"[\x02\ufffe\u00ad][ ]*(?:\r?\n)?")
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st", 0xA0: " "}
BULLET = re.compile(r"[•‣◦▪●■–—*·o\-\uf0b7][ \t]+\S|\(?[0-9a-zA-Z]{1,3}[.)][ \t]+\S|(?:Figure|Table|Chapter|Section)\s+\d", re.IGNORECASE)
SYMBOL_BULLET = re.compile(r"\A[•‣◦▪●■·\uf0b7][ \t]*")
_SPACES = re.compile(r"[ \t\u2000-\u200a\u3000]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\uffff]")
CJK = re.compile("[\u2e80-\ua4cf\uf900-\ufaff\uff00-\uffef]")
# Two figures (or dashes for none) at the end of a line: a row of a table.
ROW_END = re.compile(r"(?:[\d.,%]+|[-–—])[ ](?:[\d.,%]+|[-–—])\Z")


def clean_lines(raw: str) -> list[str]:
    """Lines without control characters and doubled spaces; blank ones mark a gap."""
    text = _SOFT_BREAK.sub("", raw).replace("\r\n", "\n").replace("\r", "\n")
    return [clean_line(line) for line in text.split("\n")]


def clean_line(line: str) -> str:
    return _SPACES.sub(" ", _CONTROLS.sub("", line.translate(_LIGATURES))).strip()


def ends_in_hyphen(text: str) -> bool:
    return text[-1:] in ("-", "\u2010") and text[-2:-1].isalpha()


def join_lines(lines: Sequence[str]) -> str:
    """Full lines become paragraphs, short ones (titles, table rows, verse) keep their line."""
    blocks: list[str] = []
    current = ""
    running = False
    for index, line in enumerate(lines):
        if not line:
            _flush(blocks, current)
            current, running = "", False
            continue
        bullet = BULLET.match(line) is not None
        continues = _is_full(lines, index)
        line = SYMBOL_BULLET.sub("- ", line)
        if current and not bullet and (running or ends_in_hyphen(current)):
            current = _joined(current, line)
        elif current and (continues or running or bullet):
            _flush(blocks, current)
            current = line
        else:
            current = f"{current}\n{line}" if current else line
        if running and not continues:
            _flush(blocks, current)
            current = ""
        running = continues
    _flush(blocks, current)
    return "\n\n".join(blocks)


def _flush(blocks: list[str], current: str) -> None:
    if current:
        blocks.append(current)


def _joined(before: str, line: str) -> str:
    if ends_in_hyphen(before):
        return before[:-1] + line if line[:1].islower() else before + line
    seam = "" if CJK.match(before[-1]) and CJK.match(line[0]) else " "
    return before + seam + line


def _is_full(lines: Sequence[str], index: int) -> bool:
    """As long as its neighbours' long lines, so that columns of different widths on one page are each judged by themselves."""
    line = lines[index]
    if ROW_END.search(line[-64:]):
        return False
    lengths = sorted(map(len, lines[max(0, index - NEIGHBOURS) : index + NEIGHBOURS + 1]))
    width = lengths[-2] if len(lengths) > 1 else 0
    # CJK lines hold half as many characters.
    least = MIN_WIDTH // 2 if any(CJK.match(char) for char in line[:: max(1, len(line) // 8)]) else MIN_WIDTH
    return width >= least and len(line) >= FULL_LINE * width
