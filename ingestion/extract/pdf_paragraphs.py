"""Lines of a PDF to paragraphs: which line goes on in the next one, told by where both stand, and how the words at the seam are joined."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from ingestion.extract.pdf_lines import Line
from ingestion.extract.pdf_rtl import has_rtl
from ingestion.extract.pdf_text import BULLET, CJK, ROW_END, SYMBOL_BULLET, ends_in_hyphen

# In widths of a line's letters; in font sizes; in distances between the page's lines.
SLACK = 1.5
INDENT = 0.8
SAME_SIZE = 0.12
WIDE_GAP = 1.4
SINGLE_LEADING = 1.75
# How far around a line its column is measured.
NEIGHBOURS = 6
# Parts of a compound that count as words of their own.
MIN_PART = 4
# Characters at the end of a line that are looked at: lines may be very long.
TAIL = 64
# No word: there are lines of Hangul that end with a space.
SPACED = " "

_WORD = re.compile(r"\w+")
_LAST_WORD = re.compile(r"\w+\Z")
_FIRST_WORD = re.compile(r"\w+")
_HANGUL = re.compile("[\\uac00-\\ud7a3\\u1100-\\u11ff]")
_LEADING_MARK = re.compile(r"(#{1,6}(?= )|```|~~~)")
_CLOSED = ".!?:;。！？：；…"


def vocabulary(lines: Iterable[Line]) -> set[str]:
    """The words that stand whole somewhere in the document, to tell broken words from compounds."""
    known: set[str] = set()
    for line in lines:
        if not line.table and line.spaced and _HANGUL.match(line.text[-1]):
            known.add(SPACED)
        words = _WORD.findall(line.text.casefold())
        known.update(words[:-1] if line.broken or ends_in_hyphen(line.text) else words)
    return known


def mend_page_breaks(pages: Sequence[list[Line]], known: set[str]) -> None:
    """A word that was broken at the end of a page comes whole on that page."""
    for lines, following in pairwise(page for page in pages if page):
        last, first = lines[-1], following[0]
        if last.table or first.table or not ends_in_hyphen(last.text) or not first.text[:1].islower():
            continue
        word, _, rest = first.text.partition(" ")
        last.text = "".join(_healed(last.text[:-1], word, known))
        if rest:
            first.text = rest
        else:
            following.pop(0)


def join_paragraphs(lines: Sequence[Line], known: set[str]) -> str:
    """Markdown: headings by their level, paragraphs, and short lines (rows of tables, verse, addresses) as lines."""
    if not lines:
        return ""
    blocks = _Blocks(known)
    leading = _leading(lines)
    blocks.start(lines[0])
    flowing = False
    for index in range(1, len(lines)):
        before, line = lines[index - 1], lines[index]
        goes_on = _is_whole(before, line, leading) if before.level or line.level else _goes_on(lines, index, leading)
        if goes_on and not before.table and not line.table:
            blocks.go_on(before, line)
        elif flowing or before.level or line.level or before.table or line.table or _is_apart(lines, index, leading):
            blocks.start(line)
        else:
            blocks.add_row(line)
        flowing = goes_on
    return blocks.markdown()


class _Blocks:
    """What is written so far. A block is rows, a row the pieces of its lines: nothing that grows is copied or searched again."""

    def __init__(self, known: set[str]) -> None:
        self._known = known
        self._done: list[str] = []
        self._rows: list[list[str]] = []

    def start(self, line: Line) -> None:
        self._close(self._rows)
        self._rows = [[f"{'#' * line.level} {line.text}" if line.level else _text(line)]]

    def add_row(self, line: Line) -> None:
        self._rows.append([_text(line)])

    def go_on(self, before: Line, line: Line) -> None:
        """The last row becomes a paragraph of its own and goes on with this line."""
        self._close(self._rows[:-1])
        row = self._rows[-1]
        self._rows = [row]
        row[-1], text = _seam(row[-1], before, _text(line), self._known)
        row.append(text)

    def markdown(self) -> str:
        self._close(self._rows)
        return "\n\n".join(self._done)

    def _close(self, rows: list[list[str]]) -> None:
        if rows:
            self._done.append("\n".join("".join(row) for row in rows))


def _text(line: Line) -> str:
    return line.text if line.level or line.table else _LEADING_MARK.sub(r"\\\1", SYMBOL_BULLET.sub("- ", line.text))


def _is_whole(before: Line, line: Line, leading: float) -> bool:
    """Whether two lines are one heading."""
    return line.level == before.level and _is_below(before, line, WIDE_GAP * max(leading, SINGLE_LEADING * line.size))


def _is_apart(lines: Sequence[Line], index: int, leading: float) -> bool:
    """Whether a line that does not go on from the one before is another block: far from it, or the first of an item of a list."""
    before, line = lines[index - 1], lines[index]
    later = index + 1 < len(lines) and _goes_on(lines, index + 1, leading)
    return not _is_near(before, line, leading) or (later and BULLET.match(line.text) is not None)


def _leading(lines: Sequence[Line]) -> float:
    """The usual distance of a line to the next one below it; 0 where there is none."""
    steps = [step for before, line in pairwise(lines) if 0 < (step := before.middle - line.middle) < 4 * max(line.size, 1)]
    return median(steps) if len(steps) > 2 else 0.0


def _is_below(before: Line, line: Line, distance: float) -> bool:
    return before.turn == line.turn and -1 <= before.middle - line.middle <= distance and _overlap(before, line)


def _is_near(before: Line, line: Line, leading: float) -> bool:
    return _is_below(before, line, WIDE_GAP * leading if leading else SINGLE_LEADING * max(line.size, before.size))


def _overlap(one: Line, other: Line) -> bool:
    return min(one.box[2], other.box[2]) > max(one.box[0], other.box[0])


def _goes_on(lines: Sequence[Line], index: int, leading: float) -> bool:
    """Whether the line before is continued by this one."""
    before, line = lines[index - 1], lines[index]
    if before.broken:
        return True
    if before.turn != line.turn or abs(before.size - line.size) > SAME_SIZE * max(before.size, line.size):
        return False
    if BULLET.match(line.text) or ROW_END.search(before.text[-TAIL:]):
        return False
    if ends_in_hyphen(before.text) and line.text[:1].islower():
        return True
    if not _is_full(lines, index - 1, line):
        return False
    if _is_near(before, line, leading):
        return not _is_indented(before, line)
    # The next column, or around a picture.
    return line.middle > before.middle and before.text[-1] not in _CLOSED and not line.text[:1].isupper()


def _is_full(lines: Sequence[Line], index: int, follower: Line) -> bool:
    """Whether the follower's first word would not have fitted."""
    line = lines[index]
    near = [
        other
        for other in lines[max(0, index - NEIGHBOURS) : index + NEIGHBOURS + 1]
        if other.turn == line.turn and _overlap(other, line) and abs(other.size - line.size) <= SAME_SIZE * line.size
    ]
    # One line may run beyond its column, as a title does.
    edge = 1 if len(near) > 3 else 0
    if has_rtl(line.text) and has_rtl(follower.text):
        slack = line.box[0] - sorted(other.box[0] for other in near)[edge]
    else:
        slack = sorted((other.box[2] for other in near), reverse=True)[edge] - line.box[2]
    letter = follower.width / max(len(follower.text), 1)
    word = 1 if CJK.match(follower.text) else len(follower.text.split(" ", 1)[0]) + 1
    return slack < (word + SLACK - 1) * letter and line.width > 12 * letter


def _is_indented(before: Line, line: Line) -> bool:
    shift = before.box[2] - line.box[2] if has_rtl(before.text) else line.box[0] - before.box[0]
    return shift > INDENT * line.size and not BULLET.match(before.text)


def _seam(tail: str, before: Line, text: str, known: set[str]) -> tuple[str, str]:
    """What stands before and after the seam of two lines; `tail` is the last piece written."""
    if before.broken:
        return _healed(tail, text, known)
    if ends_in_hyphen(tail):
        return _healed(tail[:-1], text, known) if text[:1].islower() else (tail, text)
    if _HANGUL.match(tail[-1:]) and _HANGUL.match(text[:1]) and not before.spaced and SPACED in known:
        return tail, text  # lines break inside words, and those between words end with a space
    return (tail, text) if CJK.match(tail[-1:]) and CJK.match(text[:1]) else (tail, f" {text}")


def _healed(start: str, text: str, known: set[str]) -> tuple[str, str]:
    """A word that a hyphen broke: without it, unless both parts are words here and the whole is none."""
    first, last = _LAST_WORD.search(start[-TAIL:]), _FIRST_WORD.match(text[:TAIL])
    if not first or not last or not text[:1].islower():
        return f"{start}-", text
    one, other = first[0].casefold(), last[0].casefold()
    compound = min(len(one), len(other)) >= MIN_PART and one + other not in known and one in known and other in known
    return (f"{start}-" if compound else start), text
