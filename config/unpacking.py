"""Content encodings undone in small pieces: however strongly a body is packed, at most 64 KiB comes out at once."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Only what can be bounded while it comes: each of the decoders below stops at a given length of output.
ACCEPTED = "gzip, deflate, br, zstd"
PIECE = 64 * 1024
# RFC 9659: a server may ask a reader for a window of 8 MiB; what asks for more takes the memory without sending a byte of text.
_ZSTD_WINDOW = 23
# It grows its output by whole blocks, of just under 32 KiB and then 64 KiB, until this is passed.
_BROTLI_LIMIT = 32_000
_NOT_ASKED_FOR = frozenset({"compress", "x-compress", "aes128gcm", "exi", "pack200-gzip", "dcb", "dcz"})


class BadEncoding(ValueError):
    """The body is not what its Content-Encoding says; the message completes "The server sends …"."""


def unpacked(raw: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The body in pieces, `raw` read to its end. A name that is no encoding ("utf-8", "none") is ignored, as browsers do."""
    names = [name for part in encoding.lower().split(",") if (name := part.strip()) in _DECODERS or name in _NOT_ASKED_FOR]
    if len(names) > 2 or not _NOT_ASKED_FOR.isdisjoint(names):
        raise BadEncoding(f"the encoding {encoding[:40]!r}, which was not asked for")
    pieces = iter(raw)
    for name in reversed(names):
        pieces = _checked(_DECODERS[name](pieces), name)
    return pieces


def _checked(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    damaged = _errors(name)
    try:
        yield from pieces
    except damaged as error:
        raise BadEncoding(f"a damaged {name} body ({error})") from error


def _errors(name: str) -> tuple[type[Exception], ...]:
    if name == "br":
        import brotli

        return (zlib.error, brotli.error)
    return (zlib.error, _zstd().ZstdError) if name == "zstd" else (zlib.error,)


def _zlib(raw: Iterator[bytes], *, deflate: bool) -> Iterator[bytes]:
    unpack: Any = None
    ended = False
    for data in raw:
        while data:
            if ended and (deflate or data[:1] != b"\x1f"):
                # Another member may follow a gzip one; anything else behind the end is padding.
                _drain(raw)
                return
            if unpack is None:
                unpack = zlib.decompressobj(_window(data) if deflate else zlib.MAX_WBITS | 16)
            piece = unpack.decompress(data, PIECE)
            while piece:
                yield piece
                piece = b"" if len(piece) < PIECE or unpack.eof else unpack.decompress(unpack.unconsumed_tail, PIECE)
            data, ended = (unpack.unused_data, True) if unpack.eof else (unpack.unconsumed_tail, False)
            unpack = None if ended else unpack
    if unpack is not None:
        raise zlib.error("it ends too early")


def _gzip(raw: Iterator[bytes]) -> Iterator[bytes]:
    return _zlib(raw, deflate=False)


def _deflate(raw: Iterator[bytes]) -> Iterator[bytes]:
    return _zlib(raw, deflate=True)


def _window(start: bytes) -> int:
    """Servers send "deflate" both with and without the zlib header."""
    return zlib.MAX_WBITS if start[0] & 0x0F == 8 else -zlib.MAX_WBITS


def _brotli(raw: Iterator[bytes]) -> Iterator[bytes]:
    import brotli

    unpack = brotli.Decompressor()
    started = False
    for data in raw:
        started = started or bool(data)
        piece = unpack.process(data, output_buffer_limit=_BROTLI_LIMIT)
        while piece or not unpack.can_accept_more_data():
            yield piece
            piece = b"" if unpack.is_finished() else unpack.process(b"", output_buffer_limit=_BROTLI_LIMIT)
        if unpack.is_finished():
            _drain(raw)
            return
    if started:
        raise brotli.error("it ends too early")


def _zstandard(raw: Iterator[bytes]) -> Iterator[bytes]:
    zstd = _zstd()
    unpack: Any = None
    for data in raw:
        while data:
            if unpack is None:
                unpack = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW})
            yield unpack.decompress(data, max_length=PIECE)
            while not (unpack.needs_input or unpack.eof):
                yield unpack.decompress(b"", max_length=PIECE)
            data = unpack.unused_data if unpack.eof else b""
            unpack = None if unpack.eof else unpack
    if unpack is not None:
        raise zstd.ZstdError("it ends too early")


def _zstd() -> Any:
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        from backports import zstd
    return zstd


def _drain(raw: Iterator[bytes]) -> None:
    """A connection can be used again only when its answer was read to the end."""
    for _ in raw:
        pass


_DECODERS: dict[str, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstandard,
}
