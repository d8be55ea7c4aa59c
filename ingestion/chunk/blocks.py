"""Markdown as a flat list of blocks with exact spans.

Only what a chunker must know is parsed; nothing is nested and nothing recurses, so depth of nesting cannot hurt.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEADING, PARAGRAPH, LIST, QUOTE, CODE, TABLE, HTML, RULE = "heading", "paragraph", "list", "quote", "code", "table", "html", "rule"

# A longer "heading" is a paragraph that somebody marked up as one.
_LONGEST_HEADING = 300
_BLANKS = re.compile(r"(?:[ \t\r\f\v]*\n)*")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_DELIMITER = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
MARKER = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)")
_RAW_HTML = re.compile(r" {0,3}<(pre|script|style|textarea)(?=[\s>]|$)", re.IGNORECASE)
_BLOCK_HTML = re.compile(
    r" {0,3}</?(?:address|article|aside|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|"
    r"figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|ol|optgroup|option|p|param|search|"
    r"section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?=[\s/>]|$)",
    re.IGNORECASE,
)
_SPECIAL = frozenset("#`~>-*+_<=0123456789")


class Block(NamedTuple):
    """Whole lines, from the first character of the first to the last of the last (its newline left out)."""

    kind: str
    start: int
    end: int
    level: int = 0
    title: str = ""
    header: tuple[int, int] | None = None


def parse_blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    position, length = 0, len(text)
    while position < length:
        position = _BLANKS.match(text, position).end()
        if position >= length:
            break
        end = line_end(text, position)
        line = text[position:end]
        if line.strip():
            block = _read(text, position, end, line)
            blocks.append(block)
            end = block.end
        position = end + 1
    return blocks


def leading_headings(text: str) -> list[str]:
    """The titles of the headings with which a text begins."""
    titles: list[str] = []
    position = 0
    while position < len(text):
        position = _BLANKS.match(text, position).end()
        if position >= len(text):
            break
        end = line_end(text, position)
        block = _read(text, position, end, text[position:end])
        if block.kind != HEADING:
            break
        titles.append(block.title)
        position = block.end + 1
    return titles


def line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def is_fence(line: str) -> str | None:
    """The marker of a code fence that this line opens or closes."""
    match = _FENCE.match(line)
    return match.group(1) if match else None


def closes_fence(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and bare[0] == fence[0] and not bare.strip(fence[0])


def _read(text: str, start: int, end: int, line: str) -> Block:
    first = line.lstrip()[:1]
    if first in _SPECIAL:
        if first == "#" and (block := _heading(line, start, end)):
            return block
        if first in "`~" and _indent(line) < 4 and (fence := is_fence(line)):
            return Block(CODE, start, _fence_end(text, end, fence))
        if first in "-*_" and _is_rule(line):
            return Block(RULE, start, end)
        if first == ">" and _indent(line) < 4:
            return Block(QUOTE, start, _quote_end(text, end))
        if _indent(line) < 4 and MARKER.match(line):
            return Block(LIST, start, _list_end(text, end, _indent(line)))
        if first == "<" and (html_end := _html_end(text, start, end, line)):
            return Block(HTML, start, html_end)
    if "|" in line and (table := _table(text, start, end)):
        return table
    if _indent(line) >= 4:
        return Block(CODE, start, _indented_end(text, end))
    return _paragraph(text, start, end)


def _heading(line: str, start: int, end: int) -> Block | None:
    match = _ATX.match(line)
    if not match or len(line) > _LONGEST_HEADING:
        return None
    title = line[match.end() :].strip()
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1] in " \t"):
        title = bare.rstrip()
    return Block(HEADING, start, end, len(match.group(1)), " ".join(title.split()))


def _indent(line: str) -> int:
    width = 0
    for character in line:
        if character == " ":
            width += 1
        elif character == "\t":
            width += 4 - width % 4
        else:
            break
    return width


indent = _indent


def _is_rule(line: str) -> bool:
    bare = line.replace(" ", "").replace("\t", "")
    return len(bare) >= 3 and bare[0] in "-*_" and not bare.strip(bare[0]) and _indent(line) < 4


def _lines(text: str, end: int):
    """(start, end, line) of the lines after the one that ends at `end`."""
    while end < len(text):
        start = end + 1
        if start >= len(text):
            return
        end = line_end(text, start)
        yield start, end, text[start:end]


def _interrupts(text: str, start: int, end: int, line: str) -> bool:
    """Whether a line that follows a paragraph's line begins another block."""
    first = line.lstrip()[:1]
    if first in _SPECIAL and _indent(line) < 4:
        if first == "#":
            return _heading(line, start, end) is not None
        if first in "`~":
            return is_fence(line) is not None
        if first == ">" or (first in "-*_" and _is_rule(line)):
            return True
        if first == "<":
            return bool(_RAW_HTML.match(line) or _BLOCK_HTML.match(line) or line.lstrip().startswith("<!--"))
        if match := MARKER.match(line):
            number = match.group().strip()
            return bool(line[match.end() :].strip()) and (not number[0].isdigit() or number[:-1] == "1")
    return "|" in line and _table(text, start, end, probe=True) is not None


def _fence_end(text: str, end: int, fence: str) -> int:
    for _, stop, line in _lines(text, end):
        end = stop
        if line.lstrip()[:1] == fence[0] and closes_fence(line, fence):
            break
    return end


def _quote_end(text: str, end: int) -> int:
    for start, stop, line in _lines(text, end):
        bare = line.lstrip()
        if not bare or (bare[0] != ">" and _interrupts(text, start, stop, line)):
            break
        end = stop
    return end


def _list_end(text: str, end: int, base: int) -> int:
    fence, blank = None, False
    for start, stop, line in _lines(text, end):
        if not line.strip():
            blank = True
            continue
        inner = _indent(line) > base
        if fence and inner:
            end, blank = stop, False
            if closes_fence(line, fence):
                fence = None
            continue
        fence = None
        if not inner:
            item = MARKER.match(line) and not _is_rule(line)
            if not item and (blank or _interrupts(text, start, stop, line)):
                break
        else:
            fence = is_fence(line)
        end, blank = stop, False
    return end


def _html_end(text: str, start: int, end: int, line: str) -> int | None:
    closing = None
    if match := _RAW_HTML.match(line):
        closing = f"</{match.group(1).lower()}>"
    elif line.lstrip().startswith("<!--"):
        closing = "-->"
    elif not _BLOCK_HTML.match(line):
        return None
    if closing:
        if closing in line.lower():
            return end
        for _, stop, following in _lines(text, end):
            end = stop
            if closing in following.lower():
                break
        return end
    for _, stop, following in _lines(text, end):
        if not following.strip():
            break
        end = stop
    return end


def _indented_end(text: str, end: int) -> int:
    for _, stop, line in _lines(text, end):
        if line.strip():
            if _indent(line) < 4:
                break
            end = stop
    return end


def _table(text: str, start: int, end: int, *, probe: bool = False) -> Block | None:
    below = line_end(text, end + 1) if end + 1 < len(text) else end
    delimiter = text[end + 1 : below]
    if "-" not in delimiter or not _DELIMITER.match(delimiter) or ("|" not in delimiter and "|" not in text[start:end].strip().strip("|")):
        return None
    header = (start, below)
    if not probe:
        for _, stop, line in _lines(text, below):
            if "|" not in line:
                break
            below = stop
    return Block(TABLE, start, below, header=header)


def _paragraph(text: str, start: int, end: int) -> Block:
    for begin, stop, line in _lines(text, end):
        bare = line.strip()
        if not bare:
            break
        if bare[0] in "=-" and (match := _UNDERLINE.match(line)):
            if stop - start > _LONGEST_HEADING:
                if match.group(1)[0] == "-" and len(match.group(1)) > 2:
                    break
            else:
                return Block(HEADING, start, stop, 1 if bare[0] == "=" else 2, " ".join(text[start:end].split()))
        elif _interrupts(text, begin, stop, line):
            break
        end = stop
    return Block(PARAGRAPH, start, end)
