"""How much a PDF inflates to, counted before any reader of PDFs touches it: pdfium and pdfminer set no bound of their own."""

import mmap
import re
import zlib
from pathlib import Path

from config.errors import ExtractionError
from ingestion.extract.base import MEBIBYTE, Limits

DICTIONARY_BYTES = 1_024
PIECE_BYTES = 256 * 1024

_STREAM = re.compile(rb"stream\r?\n")
_FLATE = re.compile(rb"/(?:FlateDecode|Fl)\b")
_OTHER_FILTER = re.compile(
    rb"/(?:ASCIIHexDecode|ASCII85Decode|LZWDecode|RunLengthDecode|DCTDecode|CCITTFaxDecode|JBIG2Decode|JPXDecode|AHx|A85|LZW|RL|DCT|CCF)\b"
)
# Pictures are never decoded to get at the text, and a scan's are large.
_IMAGE = re.compile(rb"/Subtype\s*/Image\b")


def check_streams(data: Path, *, name: str, limits: Limits) -> None:
    """Raises ExtractionError when one Flate stream, or all together, inflate past the limits. Chained Flate filters are followed.
    Encrypted streams do not inflate here and stay for the sandbox's memory limit, as do the rare LZW ones."""
    total = 0
    with data.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        position = 0
        while match := _STREAM.search(content, position):
            start = position = match.end()
            if content[match.start() - 3 : match.start()] == b"end":
                continue
            filters = _flate_filters(content[max(0, match.start() - DICTIONARY_BYTES) : match.start()])
            if not filters:
                continue
            room = min(limits.max_stream_bytes, limits.max_decoded_bytes - total)
            size, used = _inflated_size(content, start, filters=filters, room=room)
            if size > room:
                raise _too_large(name, one=room == limits.max_stream_bytes, limits=limits)
            total += size
            position = start + used


def _flate_filters(before: bytes) -> int:
    """How many Flate filters the stream's dictionary chains; 0 for none, for others between them, and for pictures."""
    dictionary = before[max(before.rfind(b" obj"), before.rfind(b"\nobj"), 0) :]
    if _IMAGE.search(dictionary) or _OTHER_FILTER.search(dictionary):
        return 0
    return len(_FLATE.findall(dictionary))


def _inflated_size(content: mmap.mmap, start: int, *, filters: int, room: int) -> tuple[int, int]:
    """(size of the largest stage, compressed bytes used); stops as soon as the size is over `room`."""
    stages = [zlib.decompressobj() for _ in range(filters)]
    sizes = [0] * filters
    position = start
    try:
        while position < len(content) and not stages[0].eof:
            piece = content[position : position + PIECE_BYTES]
            position += len(piece)
            if _feed(stages, sizes, piece, room=room):
                break
    except zlib.error:
        pass  # damaged or encrypted: what was inflated until here counts
    return max(sizes), position - start - len(stages[0].unused_data)


def _feed(stages: list, sizes: list[int], piece: bytes, *, room: int, index: int = 0) -> bool:
    """Passes a piece down the chain in bounded steps; True when some stage is over `room`."""
    stage = stages[index]
    while piece and not stage.eof:
        out = stage.decompress(piece, PIECE_BYTES)
        piece = stage.unconsumed_tail
        sizes[index] += len(out)
        if sizes[index] > room:
            return True
        if index + 1 < len(stages) and _feed(stages, sizes, out, room=room, index=index + 1):
            return True
        if not out and not piece:
            break
    return False


def _too_large(name: str, *, one: bool, limits: Limits) -> ExtractionError:
    what, bound = ("One part of it", limits.max_stream_bytes) if one else ("It", limits.max_decoded_bytes)
    happened = f"{name} cannot be read. {what} unpacks to more than {bound // MEBIBYTE} MiB."
    return ExtractionError(happened, advice="Save it again in a PDF program, or split it.", reason="too_large", retires=True)
