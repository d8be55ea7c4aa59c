import gzip
import random
import sys
import tracemalloc
import zlib

import brotli
import pytest

from config.unpacking import PIECE, BadEncoding, unpacked

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = random.Random(1).randbytes(30_000) + b"packed " * 20_000
_raw = zlib.compressobj(wbits=-15)
PACKED = {
    "gzip": gzip.compress(TEXT),
    "X-GZip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    " deflate ": _raw.compress(TEXT) + _raw.flush(),
    "br": brotli.compress(TEXT, quality=5),
    "zstd": zstd.compress(TEXT),
    "gzip, br": brotli.compress(gzip.compress(TEXT), quality=1),
    "": TEXT,
    "identity": TEXT,
    "UTF-8": TEXT,
}
BOMBS = {
    "gzip": gzip.compress(bytes(100_000_000)),
    "deflate": zlib.compress(bytes(100_000_000)),
    "br": brotli.compress(bytes(100_000_000), quality=5),
    "zstd": zstd.compress(bytes(100_000_000)),
}


def pieces_of(data: bytes, size: int):
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 4096, 10_000_000])
@pytest.mark.parametrize("encoding", list(PACKED))
def test_what_was_packed_comes_out_however_it_is_cut(encoding, size):
    assert b"".join(unpacked(pieces_of(PACKED[encoding], size), encoding)) == TEXT


@pytest.mark.parametrize("encoding", list(BOMBS))
def test_a_bomb_comes_out_in_small_pieces_of_small_memory(encoding):
    next(unpacked([PACKED[encoding]], encoding))
    tracemalloc.start()
    total = 0
    for piece in unpacked([BOMBS[encoding]], encoding):
        assert len(piece) <= PIECE
        total += len(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 100_000_000
    assert peak < 20_000_000


@pytest.mark.parametrize("encoding", list(BOMBS))
def test_a_body_that_stops_early_or_is_damaged_is_said_to_be(encoding):
    data = PACKED[encoding]
    with pytest.raises(BadEncoding, match="damaged"):
        list(unpacked([data[:-3]], encoding))
    with pytest.raises(BadEncoding, match="damaged"):
        list(unpacked([b"<html>this is no packed body at all</html>" * 10], encoding))
    assert list(unpacked([], encoding)) == []


@pytest.mark.parametrize("encoding", ["compress", "gzip, gzip, gzip", "gzip, dcb"])
def test_what_was_not_asked_for_is_refused(encoding):
    with pytest.raises(BadEncoding, match="not asked for"):
        list(unpacked([b""], encoding))


@pytest.mark.parametrize("size", [3, 1000])
def test_members_follow_one_another_and_padding_is_dropped(size):
    for encoding, packed in (
        ("gzip", gzip.compress(b"one ") + gzip.compress(b"two")),
        ("zstd", zstd.compress(b"one ") + zstd.compress(b"two")),
    ):
        assert b"".join(unpacked(pieces_of(packed, size), encoding)) == b"one two"
    for encoding, packed in (("gzip", gzip.compress(b"one")), ("deflate", zlib.compress(b"one"))):
        source = pieces_of(packed + b"\0" * 3000, size)
        assert b"".join(unpacked(source, encoding)) == b"one"
        assert next(source, None) is None, "what follows was read to its end"


def test_a_zstd_frame_may_not_ask_for_a_huge_window():
    huge = zstd.compress(bytes(40_000_000), options={zstd.CompressionParameter.window_log: 25})
    with pytest.raises(BadEncoding, match="damaged zstd"):
        list(unpacked([huge], "zstd"))
