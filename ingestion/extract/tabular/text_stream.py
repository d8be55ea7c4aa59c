"""A text file of any size as clean lines: its encoding is settled first, then it is read piece by piece."""

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ingestion.extract.byte_order import LOOKED_AT_BYTES, bom_encoding, unmarked_utf16
from ingestion.extract.encodings import decode

PIECE_BYTES = 1024 * 1024
# So much of what is not UTF-8 is shown to the detection, and so much of the file is searched for it.
SAMPLE_BYTES = 48 * 1024
SEARCHED_BYTES = 16 * 1024 * 1024
# A line that is longer is cut: no table of a person has it, and it would be held whole.
MAX_LINE_CHARS = 1024 * 1024


def find_encoding(path: Path, *, declared: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """(a name that Python knows, warnings). Looks at all of the file: the first foreign letter may stand in its last line."""
    with path.open("rb") as file:
        head = file.read(LOOKED_AT_BYTES)
        if bom_encoding(head) or unmarked_utf16(head):
            decoded = decode(head, cut=True)
            return decoded.encoding, decoded.warnings
        file.seek(0)
        if _is_utf8(file):
            return "utf-8", []
        file.seek(0)
        sample = _foreign_lines(file)
    decoded = decode(sample, cut=True, declared=declared)
    return decoded.encoding, decoded.warnings


def open_text(path: Path, *, encoding: str) -> TextIO:
    return path.open(encoding=encoding, errors="replace", newline=None)


def lines(stream: TextIO) -> Iterator[str]:
    """With their line ends; NULs dropped, because no cell has one."""
    while line := stream.readline(MAX_LINE_CHARS):
        yield line.replace("\0", "") if "\0" in line else line


def _is_utf8(file: object) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while piece := file.read(PIECE_BYTES):  # type: ignore[attr-defined]
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _foreign_lines(file: object) -> bytes:
    """The lines that hold more than ASCII: in a large export they may be few and far between."""
    kept: list[bytes] = []
    size = searched = 0
    for line in file:  # type: ignore[attr-defined]
        searched += len(line)
        if not line.isascii():
            kept.append(line[:SAMPLE_BYTES])
            size += len(kept[-1])
        if size > SAMPLE_BYTES or (kept and searched > SEARCHED_BYTES):
            break
    return b"".join(kept)
