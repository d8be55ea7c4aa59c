"""Excel workbooks from before 2007, record by record, in the container of their time."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
# Shorter streams would have to stand in a stream of their own.
_LEAST_STREAM = 4_096


def ole2_file(streams: Mapping[str, bytes]) -> bytes:
    """Streams of the root, filled up with zeros."""
    padded = {
        name: content + bytes(max(_LEAST_STREAM, -(-len(content) // SECTOR) * SECTOR) - len(content)) for name, content in streams.items()
    }
    directory_sectors = -(-(len(padded) + 1) * 128 // SECTOR)
    sectors = directory_sectors + sum(len(content) // SECTOR for content in padded.values())
    fat_sectors = -(-sectors // (SECTOR // 4 - 1))
    fat = [_FAT] * fat_sectors
    fat += _chain(len(fat), directory_sectors)
    entries = [_entry("Root Entry", kind=5, child=1 if padded else _FREE, start=_END, size=0)]
    for number, (name, content) in enumerate(padded.items(), start=1):
        after = number + 1 if number < len(padded) else _FREE
        entries.append(_entry(name, kind=2, right=after, start=len(fat), size=len(content)))
        fat += _chain(len(fat), len(content) // SECTOR)
    fat += [_FREE] * (fat_sectors * SECTOR // 4 - len(fat))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIII", 0, fat_sectors, fat_sectors, 0, _LEAST_STREAM, _END, 0, _END, 0)
    header += struct.pack("<109I", *range(fat_sectors), *([_FREE] * (109 - fat_sectors)))
    directory = b"".join(entries).ljust(directory_sectors * SECTOR, b"\0")
    return header + struct.pack(f"<{len(fat)}I", *fat) + directory + b"".join(padded.values())


def old_workbook(
    sheets: Mapping[str, Sequence[Sequence[Any]]],
    *,
    formats: Mapping[int, str] | None = None,
    hidden: Sequence[str] = (),
    merged: Sequence[tuple[int, int, int, int]] = (),
) -> bytes:
    """`formats` are by column, `merged` are (first row, last row, first column, last column) of every sheet."""
    texts = list(dict.fromkeys(cell for rows in sheets.values() for row in rows for cell in row if isinstance(cell, str)))
    styles = {column: number for number, column in enumerate(formats or {}, start=1)}
    head = _record(0x809, struct.pack("<HHHHII", 0x600, 5, 0x1DBB, 1997, 0, 6)) + _record(0x42, struct.pack("<H", 1200))
    head += _record(0x31, struct.pack("<HHHHHBBBB", 200, 0, 0x7FFF, 400, 0, 0, 0, 0, 0) + _text("Arial", "<B"))
    for number, code in enumerate((formats or {}).values(), start=164):
        head += _record(0x41E, struct.pack("<H", number) + _text(code, "<H"))
    head += b"".join(_record(0xE0, struct.pack("<HHH14x", 0, number, 1)) for number in (0, *range(164, 164 + len(styles))))
    strings = _record(0xFC, struct.pack("<II", len(texts), len(texts)) + b"".join(_text(text, "<H") for text in texts)) + _record(0x0A)
    bodies = [_sheet(rows, texts=texts, styles=styles, merged=merged) for rows in sheets.values()]
    place = len(head) + len(strings) + sum(len(_bound(name, 0, hidden=False)) for name in sheets)
    for name, body in zip(sheets, bodies, strict=True):
        head += _bound(name, place, hidden=name in hidden)
        place += len(body)
    return ole2_file({"Workbook": head + strings + b"".join(bodies)})


def _sheet(rows: Sequence[Sequence[Any]], *, texts: list[str], styles: Mapping[int, int], merged: Sequence[tuple[int, ...]]) -> bytes:
    out = _record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0x1DBB, 1997, 0, 6))
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            place = struct.pack("<HHH", number, column, styles.get(column, 0))
            if isinstance(cell, bool):
                out += _record(0x205, place + struct.pack("<BB", cell, 0))
            elif isinstance(cell, (int, float)):
                out += _record(0x203, place + struct.pack("<d", cell))
            elif cell is not None:
                out += _record(0xFD, place + struct.pack("<I", texts.index(cell)))
    if merged:
        out += _record(0xE5, struct.pack("<H", len(merged)) + b"".join(struct.pack("<HHHH", *cells) for cells in merged))
    return out + _record(0x0A)


def _bound(name: str, place: int, *, hidden: bool) -> bytes:
    return _record(0x85, struct.pack("<IBB", place, hidden, 0) + _text(name, "<B"))


def _record(kind: int, content: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _text(text: str, length: str) -> bytes:
    return struct.pack(length, len(text)) + b"\x01" + text.encode("utf-16-le")


def _chain(start: int, count: int) -> list[int]:
    return [*range(start + 1, start + count), _END] if count else []


def _entry(name: str, *, kind: int, start: int, size: int, right: int = _FREE, child: int = _FREE) -> bytes:
    encoded = name.encode("utf-16-le") + b"\0\0"
    return encoded.ljust(64, b"\0") + struct.pack("<HBBIII36xIII", len(encoded), kind, 1, _FREE, right, child, start, size, 0)
