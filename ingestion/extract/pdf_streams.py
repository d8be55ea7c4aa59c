"""How much a PDF inflates to, counted before any reader of PDFs touches it: pdfium sets no bound of its own that would fit into memory."""

import mmap
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

from config.errors import ExtractionError
from ingestion.extract.base import MEBIBYTE, Limits

DICTIONARY_BYTES = 1_024
PIECE_BYTES = 256 * 1024
# Smaller streams may be named often, as letterheads are.
LARGE_BYTES = 64 * 1024

_STREAM = re.compile(rb"stream\r?\n")
_FLATE = re.compile(rb"/(?:FlateDecode|Fl)\b")
_OTHER_FILTER = re.compile(
    rb"/(?:ASCIIHexDecode|ASCII85Decode|LZWDecode|RunLengthDecode|DCTDecode|CCITTFaxDecode|JBIG2Decode|JPXDecode|AHx|A85|LZW|RL|DCT|CCF)\b"
)
# Pictures are never decoded to get at the text, and a scan's are large.
_IMAGE = re.compile(rb"/Subtype\s*/Image\b")
_OBJECT = re.compile(rb"(\d{1,10})\s+\d+\s+obj\b")
# Objects that are stored inside a stream, a page's dictionary among them.
_PACKED = re.compile(rb"/Type\s*/ObjStm\b")
_CONTENTS = re.compile(rb"/Contents\s*\[([^\]]{0,200000})\]")
_REFERENCE = re.compile(rb"(\d{1,10})\s+\d+\s+R\b")


def check_streams(data: Path, *, name: str, limits: Limits) -> None:
    """Raises ExtractionError when one Flate stream, or all together, or all that one page names, inflate past the limits.

    Chained Flate filters are followed. Encrypted streams do not inflate here and stay for the sandbox's memory limit, as do the rare LZW
    ones."""
    total = 0
    large: dict[int, int] = {}
    with data.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        places: list[mmap.mmap | bytes] = [content]
        position = 0
        while match := _STREAM.search(content, position):
            start = position = match.end()
            if content[match.start() - 3 : match.start()] == b"end":
                continue
            before = content[max(0, match.start() - DICTIONARY_BYTES) : match.start()]
            number, dictionary = _object(before)
            filters = _flate_filters(dictionary)
            if not filters:
                continue
            room = min(limits.max_stream_bytes, limits.max_decoded_bytes - total)
            kept = bytearray() if _PACKED.search(dictionary) else None
            size, used = _inflated_size(content, start, filters=filters, room=room, kept=kept)
            if size > room:
                raise _too_large(name, one=room == limits.max_stream_bytes, limits=limits)
            total += size
            position = start + used
            if size > LARGE_BYTES:
                large[number] = size
            if kept:
                places.append(bytes(kept))
        if large and _largest_page(places, large) > limits.max_decoded_bytes:
            raise _too_large(name, one=False, limits=limits)


def _object(before: bytes) -> tuple[int, bytes]:
    """(number, dictionary) of the object whose stream begins after `before`; -1 for a number out of sight."""
    last = None
    for match in _OBJECT.finditer(before):
        last = match
    return (int(last[1]), before[last.end() :]) if last else (-1, before)


def _flate_filters(dictionary: bytes) -> int:
    """How many Flate filters the stream's dictionary chains; 0 for none, for others between them, and for pictures."""
    if _IMAGE.search(dictionary) or _OTHER_FILTER.search(dictionary):
        return 0
    return len(_FLATE.findall(dictionary))


def _largest_page(places: Iterable[mmap.mmap | bytes], large: dict[int, int]) -> int:
    """What the streams in one list of contents have together, those that are named again counted again."""
    return max(
        (
            sum(large.get(int(number), 0) for number in _REFERENCE.findall(match[1]))
            for place in places
            for match in _CONTENTS.finditer(place)
        ),
        default=0,
    )


def _inflated_size(content: mmap.mmap, start: int, *, filters: int, room: int, kept: bytearray | None) -> tuple[int, int]:
    """(size of the largest stage, compressed bytes used); stops as soon as the size is over `room`. What comes out goes to `kept`."""
    stages = [zlib.decompressobj() for _ in range(filters)]
    sizes = [0] * filters
    position = start
    try:
        while position < len(content) and not stages[0].eof:
            piece = content[position : position + PIECE_BYTES]
            position += len(piece)
            if _feed(stages, sizes, piece, room=room, kept=kept):
                break
    except zlib.error:
        pass  # damaged or encrypted: what was inflated until here counts
    return max(sizes), position - start - len(stages[0].unused_data)


def _feed(stages: list, sizes: list[int], piece: bytes, *, room: int, kept: bytearray | None, index: int = 0) -> bool:
    """Passes a piece down the chain in bounded steps; True when some stage is over `room`."""
    stage = stages[index]
    while piece and not stage.eof:
        out = stage.decompress(piece, PIECE_BYTES)
        piece = stage.unconsumed_tail
        sizes[index] += len(out)
        if sizes[index] > room:
            return True
        if index + 1 < len(stages):
            if _feed(stages, sizes, out, room=room, kept=kept, index=index + 1):
                return True
        elif kept is not None:
            kept += out
        if not out and not piece:
            break
    return False


def _too_large(name: str, *, one: bool, limits: Limits) -> ExtractionError:
    what, bound = ("One part of it", limits.max_stream_bytes) if one else ("It", limits.max_decoded_bytes)
    happened = f"{name} cannot be read. {what} unpacks to more than {bound // MEBIBYTE} MiB."
    return ExtractionError(happened, advice="Save it again in a PDF program, or split it.", reason="too_large", retires=True)
