"""Headings of a PDF: what its outline names, and where it has none, lines that are set larger or bolder than the text, if that is plain."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import pypdfium2 as pdfium

from ingestion.extract.pdf_lines import Line
from ingestion.extract.pdf_text import SYMBOL_BULLET

MAX_ENTRIES = 5_000
MAX_LEVEL = 6
MAX_TITLE_CHARS = 200
TITLE_LINES = 3
# An outline that finds fewer of its titles in the text was not made from it.
MIN_FOUND = 0.3

LARGER = 1.1
# Points: smaller text is no text to compare with.
MIN_BODY = 5.0
SIZE_LEVELS = 3
MAX_HEADING_CHARS = 120
# Above this share of the letters, what is large or bold is no heading.
MAX_SHARE = 0.2
MIN_LINES = 8
_LETTER = re.compile(r"[^\W\d_]")
_NO_WORDS = re.compile(r"[\W_]+")
_NUMBERING = re.compile(r"\A(?:(?:chapter|section|part|appendix|kapitel|teil|anhang)\s+)?[\divxa-z]{1,4}(?:\.\d+)*[.):]?\s+", re.IGNORECASE)
_UNFINISHED = (",", ";", ".", "،", "、", "。", "-", "–")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the outline. `page` counts from 0; `level` from 1."""

    title: str
    level: int
    page: int


def outline(document: pdfium.PdfDocument) -> list[Entry]:
    """The first entries that point to a page. A broken outline is none."""
    entries: list[Entry] = []
    try:
        for mark in islice(document.get_toc(max_depth=MAX_LEVEL), MAX_ENTRIES):
            target = mark.get_dest()
            page = target.get_index() if target is not None else None
            title = " ".join(mark.get_title().split())
            if page is not None and 0 < len(title) <= MAX_TITLE_CHARS:
                entries.append(Entry(title, mark.level + 1, page))
    except (pdfium.PdfiumError, UnicodeDecodeError):
        return []
    return entries


def mark_headings(pages: Sequence[tuple[int, Sequence[Line]]], entries: Sequence[Entry]) -> None:
    """Sets `level` of the lines that are headings. `pages` are (index from 0, lines)."""
    if entries and _mark_outline(pages, entries):
        return
    _mark_by_looks([line for _, lines in pages for line in lines if not line.table])


def _mark_outline(pages: Sequence[tuple[int, Sequence[Line]]], entries: Sequence[Entry]) -> bool:
    """False, with nothing marked, when too few titles are found."""
    wanted = defaultdict(list)
    for entry in entries:
        wanted[entry.page].append(entry)
    known = {index for index, _ in pages}
    found = []
    for index, lines in pages:
        spans = _by_title(lines) if wanted[index] else {}
        for entry in wanted[index]:
            if span := spans.get(_bare(entry.title)) or spans.get(_bare(_NUMBERING.sub("", entry.title))):
                found.append((span, entry.level))
    if len(found) < MIN_FOUND * sum(entry.page in known for entry in entries):
        return False
    for span, level in found:
        for line in span:
            line.level = min(level, MAX_LEVEL)
    return bool(found)


def _by_title(lines: Sequence[Line]) -> dict[str, Sequence[Line]]:
    """What one to three lines together say, without spaces and signs, with and without a number before it -> the first that say it."""
    spans: dict[str, Sequence[Line]] = {}
    for start in range(len(lines)):
        for end in range(start + 1, min(start + TITLE_LINES, len(lines)) + 1):
            span = lines[start:end]
            text = " ".join(line.text for line in span)
            if len(text) > 2 * MAX_TITLE_CHARS or span[-1].table:
                break
            spans.setdefault(_bare(text), span)
            spans.setdefault(_bare(_NUMBERING.sub("", text)), span)
    spans.pop("", None)
    return spans


def _bare(text: str) -> str:
    return _NO_WORDS.sub("", text).casefold()


def _mark_by_looks(lines: Sequence[Line]) -> None:
    letters: Counter[float] = Counter()
    for line in lines:
        letters[line.size] += len(line.text)
    total = letters.total()
    if len(lines) < MIN_LINES or not total:
        return
    body = letters.most_common(1)[0][0]
    if body < MIN_BODY:
        return
    candidates = [line for line in lines if line.size >= LARGER * body and _is_title(line)]
    large = sum(count for size, count in letters.items() if size >= LARGER * body)
    sizes: list[float] = []
    if large <= MAX_SHARE * total:
        sizes = sorted({line.size for line in candidates}, reverse=True)
        for line in candidates:
            line.level = min(sizes.index(line.size) + 1, SIZE_LEVELS)
    _mark_bold(lines, body, level=min(len(sizes), SIZE_LEVELS) + 1, total=total)
    marked = [line for line in lines if line.level]
    if marked:
        marked[0].level = min(line.level for line in marked)  # a title is above what follows, however it is set


def _mark_bold(lines: Sequence[Line], body: float, *, level: int, total: int) -> None:
    """Bold lines of the text's size between others that are not bold."""
    if sum(len(line.text) for line in lines if line.bold) > MAX_SHARE * total:
        return
    for index, line in enumerate(lines):
        after = lines[index + 1] if index + 1 < len(lines) else None
        alone = after is not None and not after.bold and (index == 0 or not lines[index - 1].bold)
        if line.bold and alone and not line.level and abs(line.size - body) < 0.1 * body and _is_title(line) and _is_apart(lines, index):
            line.level = level


def _is_apart(lines: Sequence[Line], index: int) -> bool:
    """More space above than below, as a heading has; or first on its page."""
    line, after = lines[index], lines[index + 1]
    if index == 0 or lines[index - 1].middle <= line.middle:
        return line.middle > after.middle
    return lines[index - 1].middle - line.middle > 1.15 * (line.middle - after.middle) > 0


def _is_title(line: Line) -> bool:
    letters = len(_LETTER.findall(line.text))
    fitting = len(line.text) <= MAX_HEADING_CHARS and letters >= 2 and not line.text.endswith(_UNFINISHED)
    return fitting and not SYMBOL_BULLET.match(line.text)
