"""Markdown stays as it is; front matter becomes metadata and the first heading the title."""

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.text import read_text

_YAML_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML_FRONT = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_YAML_LINE = re.compile(r"([A-Za-z_][\w .-]*?)[ \t]*:(?:[ \t]+(.*)|[ \t]*)\Z")
_YAML_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}#[ \t]+(.*?)[ \t]*#*[ \t]*\Z")
_SETEXT = re.compile(r" {0,3}=+[ \t]*\Z")
_INLINE = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]{1,3}(\S(?:.*?\S)?)[*_`]{1,3}")

MAX_FIELDS = 64
MAX_VALUE_CHARS = 2_000


class MarkdownExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        decoded = read_text(data, limits=limits, served=served)
        metadata, body = split_front_matter(decoded.text)
        title, language = metadata.get("title"), metadata.get("language") or metadata.get("lang")
        return Extracted(
            markdown=body,
            title=title if isinstance(title, str) and title.strip() else first_heading(body) or Path(name).stem,
            media_type="text/markdown",
            language=language[:2].lower() if isinstance(language, str) and re.match(r"[A-Za-z]{2}\b", language) else None,
            metadata=metadata | {"encoding": decoded.encoding},
            truncated=decoded.cut,
            warnings=decoded.warnings,
        )


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """(metadata, text without it). What does not look like front matter stays text: a first line `---` is also a rule."""
    if match := _TOML_FRONT.match(text):
        try:
            return _flat(tomllib.loads(match[1])), text[match.end() :].lstrip("\n")
        except (tomllib.TOMLDecodeError, RecursionError):
            return {}, text
    if match := _YAML_FRONT.match(text):
        metadata = _yaml_fields(match[1])
        if metadata or not match[1].strip():
            return metadata, text[match.end() :].lstrip("\n")
    return {}, text


def first_heading(text: str) -> str:
    """The first level-one heading outside code, without its inline marks; "" when there is none."""
    fence = previous = ""
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
            continue
        if fence:
            continue
        if match := _ATX.match(line):
            return _plain(match[1])
        if previous.strip() and _SETEXT.match(line):
            return _plain(previous)
        previous = line
    return ""


def _plain(text: str) -> str:
    return _INLINE.sub(lambda match: match[1] or match[2] or "", text).strip()


def _yaml_fields(block: str) -> dict[str, Any]:
    """Scalars, quoted scalars and lists of scalars: what front matter is made of. No YAML loader sees a stranger's file."""
    fields: dict[str, Any] = {}
    key = None
    for line in block.splitlines()[: 4 * MAX_FIELDS]:
        if match := _YAML_LINE.match(line):
            key = match[1].strip().lower()
            fields[key] = _scalar(match[2] or "")
        elif key is not None and (item := _YAML_ITEM.match(line)):
            before = fields[key]
            fields[key] = (before if isinstance(before, list) else [before] if before else []) + [_scalar(item[1])]
        elif line.strip() and not line.lstrip().startswith("#") and key is None:
            return {}
    return dict(list(fields.items())[:MAX_FIELDS])


def _scalar(text: str) -> Any:
    text = text.strip()[:MAX_VALUE_CHARS]
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(item) for item in text[1:-1].split(",") if item.strip()]
    if text in ("|", ">", "|-", ">-"):
        return ""
    return text.partition(" #")[0].rstrip()


def _flat(table: dict[str, Any]) -> dict[str, Any]:
    """Only what JSON holds; dates as ISO text, nested tables dropped."""
    kept: dict[str, Any] = {}
    for key, value in list(table.items())[:MAX_FIELDS]:
        if isinstance(value, (datetime.date, datetime.time)):
            kept[key.lower()] = value.isoformat()
        elif isinstance(value, str):
            kept[key.lower()] = value[:MAX_VALUE_CHARS]
        elif isinstance(value, (bool, int, float)):
            kept[key.lower()] = value
        elif isinstance(value, list):
            kept[key.lower()] = [str(item)[:MAX_VALUE_CHARS] for item in value[:MAX_FIELDS] if not isinstance(item, (dict, list))]
    return kept
