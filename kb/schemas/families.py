"""Families of formats: what a file probably is, by its first bytes, its type and its name, and what the policy says of it by default.

The defaults are facts about formats and what reads them, so they change with the code. Whether a file can be read, its extraction says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

HEAD_BYTES = 8192
# What is sent by who does not know the type.
SILENCE = frozenset({"", "application/octet-stream", "application/x-www-form-urlencoded", "binary/octet-stream"})


@dataclass(frozen=True, slots=True)
class Family:
    """`defaults` is the family's layer of the ingest policy."""

    media_types: frozenset[str] = frozenset()
    extensions: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)


def _family(media_types: str, extensions: str, **defaults: Any) -> Family:
    return Family(frozenset(media_types.split()), frozenset(extensions.split()), defaults)


_OOXML = "application/vnd.openxmlformats-officedocument"
_OASIS = "application/vnd.oasis.opendocument"

FAMILIES: Mapping[str, Family] = {
    "markdown": _family("text/markdown text/x-markdown", "md markdown mdown mkd mdx", mode="text"),
    "text": _family(
        "text/plain application/json application/x-ndjson application/xml text/xml application/yaml text/x-rst",
        "txt text log json jsonl ndjson yaml yml xml rst",
        mode="text",
    ),
    "html": _family("text/html application/xhtml+xml", "html htm xhtml", mode="text"),
    "pdf": _family("application/pdf application/x-pdf", "pdf", mode="text"),
    "office": _family(
        f"{_OOXML}.wordprocessingml.document {_OOXML}.presentationml.presentation {_OASIS}.text {_OASIS}.presentation "
        "application/rtf text/rtf application/epub+zip application/msword application/vnd.ms-powerpoint",
        "docx docm doc pptx pptm ppt odt odp rtf epub",
        mode="text",
    ),
    "mail": _family("message/rfc822 application/vnd.ms-outlook", "eml msg", mode="text"),
    # How many rows a table needs to become a dataset, extraction knows: `auto`.
    "tabular": _family(
        f"text/csv text/tab-separated-values {_OOXML}.spreadsheetml.sheet {_OASIS}.spreadsheet application/vnd.ms-excel "
        "application/vnd.apache.parquet application/x-parquet",
        "csv tsv tab psv xlsx xlsm xls ods parquet",
        mode="auto",
    ),
    # Speech has no headings and no empty lines to cut at.
    "audio": _family(
        "",
        "wav mp3 m4a flac ogg oga opus webm mp4",
        mode="text",
        chunking={"strategy": "transcript", "target_tokens": 450, "overlap": 0.15},
    ),
    "image": _family("", "png jpg jpeg gif tif tiff webp bmp svg", mode="store"),
    "unknown": _family("", "", mode="store"),
}
UNKNOWN = "unknown"

_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*")
_SOUNDS = (b"ID3\x03", b"ID3\x04", b"OggS\x00", b"fLaC\x00", b"\x1aE\xdf\xa3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_ARCHIVE, _OLE2 = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # text in two or four bytes a character holds NUL bytes
# What is inside a container, its name and type say; extraction looks.
_CONTAINED = frozenset({"office", "tabular", "mail"})


def family_of(*, media_type: str = "", name: str = "", head: bytes | None = None) -> str:
    """A key of FAMILIES. Bytes come before the declared type, that before the name; without `head` only those two are asked."""
    if head is not None and (found := _by_bytes(head, media_type, name)):
        return found
    named = _by_type(media_type) or _by_extension(name)
    if named:
        return named
    return "text" if bare(media_type).startswith("text/") or head else UNKNOWN


def bare(media_type: str) -> str:
    """The type without parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def _by_bytes(head: bytes, media_type: str, name: str) -> str:
    """What bytes alone tell, or ""."""
    if head.lstrip(b"\xef\xbb\xbf\r\n\t \0").startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(b"{\\rtf1"):
        return "office"
    if head.startswith(b"PAR1"):
        return "tabular"
    if head.startswith((_ARCHIVE, _OLE2)):
        inside = next((f for f in (_by_type(media_type), _by_extension(name)) if f in _CONTAINED), "")
        return inside or ("office" if head.startswith(_OLE2) else UNKNOWN)
    if head.startswith(_PICTURES) or (head.startswith(b"RIFF") and head[8:12] == b"WEBP"):
        return "image"
    if head.startswith(_SOUNDS) or (head.startswith(b"RIFF") and head[8:12] == b"WAVE") or head[4:8] == b"ftyp":
        return "audio"
    return UNKNOWN if b"\0" in head and not head.startswith(_WIDE) else ""


def _by_type(media_type: str) -> str:
    declared = bare(media_type)
    if declared in SILENCE:
        return ""
    if declared.startswith(("audio/", "video/")):
        return "audio"
    if declared.startswith("image/"):
        return "image"
    return next((name for name, family in FAMILIES.items() if declared in family.media_types), "")


def _by_extension(name: str) -> str:
    extension = PurePosixPath(name).suffix.lstrip(".").lower()
    return next((key for key, family in FAMILIES.items() if extension and extension in family.extensions), "")
