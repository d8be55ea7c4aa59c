"""JSON and JSON lines: lists of flat records become a table, everything else stays what it is, in lines that a person can read."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.fences import fence
from ingestion.extract.tables import markdown_table
from ingestion.extract.text import FENCE_ROOM, read_text

MEDIA_TYPE = "application/json"
# Longer lines, or letters written as \\u00e9, are for machines: those are laid out anew.
READABLE_LINE = 300
INLINE_CHARS = 100
MAX_INDENT = 16
# Records are a table when so many of its cells have something in them, and none of them is a page of text.
FILLED_SHARE = 0.5
MAX_CELL_CHARS = 1_000
MIN_RECORDS = 2

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_FLAT = re.compile(r'[\[{](?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*[\]}]', re.DOTALL)
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")


class JsonExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        decoded = read_text(data, limits=limits, served=served)
        warnings = list(decoded.warnings)
        truncated = decoded.cut
        records = None if decoded.cut else _records(decoded.text, limits=limits)
        if records is not None:
            markdown = markdown_table(records[: limits.max_rows + 1])
            if len(records) > limits.max_rows + 1:
                warnings.append(f"Only the first {limits.max_rows:,} of {len(records) - 1:,} records were kept as text.")
        else:
            room = max(1, limits.max_chars - FENCE_ROOM)
            text = _readable(decoded.text, room=room)
            truncated = truncated or len(text) > room
            markdown = fence(text[:room], language="json")
        return Extracted(
            markdown=markdown,
            title=Path(name).name,
            media_type=MEDIA_TYPE,
            metadata={"encoding": decoded.encoding},
            truncated=truncated,
            warnings=warnings,
        )


def _records(text: str, *, limits: Limits) -> list[list[str]] | None:
    """Header and rows, if all there is are records of plain values with much the same names."""
    values = _values(text)
    if values is None or len(values) < MIN_RECORDS or not all(isinstance(value, dict) and value for value in values):
        return None
    names = list(dict.fromkeys(itertools.chain.from_iterable(values)))
    if not 1 < len(names) <= limits.max_columns or sum(map(len, values)) < len(names) * len(values) * FILLED_SHARE:
        return None
    rows: list[list[str]] = [names]
    for value in values:
        cells = [_cell(value.get(name)) for name in names]
        if any(cell is None for cell in cells):
            return None
        rows.append([cell or "" for cell in cells])
    return rows


def _values(text: str) -> list[Any] | None:
    """The items of a list, or of the lines. Numbers stay as they are spelled."""
    start = text.lstrip()[:1]
    if start not in ("[", "{"):
        return None
    try:
        if start == "[":
            found = json.loads(text, parse_int=str, parse_float=str)
            return found if isinstance(found, list) else None
        return [json.loads(line, parse_int=str, parse_float=str) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None


def _cell(value: Any) -> str | None:
    """None for what is no cell of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and len(value) <= MAX_CELL_CHARS else None


def _readable(text: str, *, room: int) -> str:
    """The same tokens in lines by depth, where the lines are not a person's; also of what is cut or damaged. A little more than `room`."""
    if not _ESCAPE.search(text) and max(map(len, text.splitlines()), default=0) <= READABLE_LINE:
        return text
    parts: list[str] = []
    for part in _laid_out(text):
        parts.append(part)
        room -= len(part)
        if room < 0:
            break
    return "".join(parts)


def _laid_out(text: str) -> Iterator[str]:
    depth = at = 0
    while match := _TOKEN.search(text, at):
        piece, at = match[0], match.end()
        if piece in ("[", "{"):
            flat = _FLAT.match(text[match.start() : match.start() + INLINE_CHARS])
            if flat is not None:
                yield _unescaped(" ".join(flat[0].split()))
                at = match.start() + flat.end()
            else:
                depth += 1
                yield piece + _line(depth)
        elif piece in ("]", "}"):
            depth = max(0, depth - 1)
            yield _line(depth) + piece
        elif piece == ",":
            yield "," + _line(depth)
        elif piece == ":":
            yield ": "
        else:
            yield _unescaped(piece)
        if depth == 0 and text[at : at + 2].strip(" \t\r")[:1] == "\n":
            yield "\n"


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, MAX_INDENT)


def _unescaped(token: str) -> str:
    """Letters for their escapes; what would break the line or the string stays escaped."""
    if "\\u" not in token:
        return token
    return re.sub(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[0-9a-fA-F]{4}|\\.", _letter, token, flags=re.DOTALL)


def _letter(match: re.Match[str]) -> str:
    if len(match[0]) < len("\\u00e9"):
        return match[0]  # another escape, or half of one
    letter = json.loads(f'"{match[0]}"') if len(match[0]) > 6 else chr(int(match[0][2:], 16))
    return letter if letter.isprintable() and letter not in '"\\' else match[0]
