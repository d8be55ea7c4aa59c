"""Messages between a process and its children: four bytes of length, then JSON."""

import json
import struct
from typing import Any, BinaryIO

LENGTH = struct.Struct(">I")
MAX_FRAME_BYTES = 256 * 1024 * 1024


def pack_frame(message: dict[str, Any]) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    return LENGTH.pack(len(body)) + body


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """None when the other side has closed the pipe."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = stream.read(length)
    return json.loads(body) if len(body) == length else None


class FrameBuffer:
    """Puts frames together from the pieces that a non-blocking read gives."""

    def __init__(self, *, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._bytes = bytearray()
        self._max_bytes = max_bytes

    def add(self, piece: bytes) -> None:
        self._bytes += piece

    def __bool__(self) -> bool:
        return bool(self._bytes)

    def take(self) -> dict[str, Any] | None:
        """The next message, once it is whole."""
        if len(self._bytes) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._bytes)
        if length > self._max_bytes:
            raise ValueError(f"a frame of {length} bytes")
        end = LENGTH.size + length
        if len(self._bytes) < end:
            return None
        message = json.loads(bytes(self._bytes[LENGTH.size : end]))
        del self._bytes[:end]
        return message
