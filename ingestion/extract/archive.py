"""A ZIP container of a stranger: parts by name, inflated piece by piece, and no more of them in all than is allowed."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

from config.errors import ExtractionError
from ingestion.extract.base import MEBIBYTE, Limits

PIECE_BYTES = 64 * 1024
# Directory entries become objects of some 500 bytes each before one of them is looked at.
MAX_DIRECTORY_BYTES = 8 * MEBIBYTE
MAX_PARTS = 50_000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_END, _END_BYTES, _COMMENT_BYTES = b"PK\x05\x06", 22, 65_535


class Archive:
    """What is counted are bytes that really came out: sizes that the container states of itself are not believed."""

    def __init__(self, path: Path, *, name: str, limits: Limits) -> None:
        self.name = name
        self._left = self._allowed = limits.max_archive_bytes
        self._open: list[IO[bytes]] = []
        _check_directory(path, name=name)
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
            raise damaged(name, words="a damaged archive") from error
        self._parts = {info.filename: info for info in self._zip.infolist()}
        if len(self._parts) != len(self._zip.infolist()):
            self.close()
            happened = f"{name} holds two parts of one name, so that nobody can say which is meant."
            raise ExtractionError(happened, advice="Save it again.", reason="damaged", retires=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Also what was opened and not read to its end."""
        for stream in self._open:
            stream.close()
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """In the order of the container."""
        return list(self._parts)

    def __contains__(self, part: str) -> bool:
        return part in self._parts

    def read(self, part: str) -> bytes:
        """The whole part. Raises ExtractionError, content at fault: missing, damaged, encrypted, or more than is allowed."""
        return b"".join(self.pieces(part))

    def read_start(self, part: str, *, limit: int) -> bytes:
        """The first bytes of a part; b"" when there is no such part."""
        out = bytearray()
        if part in self._parts:
            for piece in self.pieces(part):
                out += piece
                if len(out) >= limit:
                    break
        return bytes(out[:limit])

    def pieces(self, part: str) -> Iterator[bytes]:
        info = self._parts.get(part)
        if info is None or info.compress_type not in METHODS:
            raise damaged(self.name)
        if info.flag_bits & 1:
            raise needs_password(self.name)
        try:
            with self._zip.open(info) as stream:
                self._open.append(stream)
                while piece := self._counted(stream):
                    yield piece
                self._open.remove(stream)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, zlib.error) as error:
            raise damaged(self.name) from error

    def _counted(self, stream: IO[bytes]) -> bytes:
        piece = stream.read(PIECE_BYTES)
        self._left -= len(piece)
        if self._left < 0:
            happened = f"{self.name} unpacks to more than {self._allowed // MEBIBYTE} MiB."
            raise ExtractionError(happened, advice="Split it into smaller ones.", reason="too_large", retires=True)
        return piece


def damaged(name: str, *, words: str = "damaged and cannot be read") -> ExtractionError:
    return ExtractionError(f"{name} is {words}.", advice="Save it again in the program it comes from.", reason="damaged", retires=True)


def needs_password(name: str) -> ExtractionError:
    advice = "Save it without one and upload it again."
    return ExtractionError(f"{name} needs a password.", advice=advice, reason="encrypted", retires=True)


def _check_directory(path: Path, *, name: str) -> None:
    """zipfile reads as many bytes as the end record says, and makes an object of each entry."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _COMMENT_BYTES - _END_BYTES))
        tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise damaged(name, words="a damaged archive")
    entries, directory = int.from_bytes(tail[at + 10 : at + 12], "little"), int.from_bytes(tail[at + 12 : at + 16], "little")
    if directory == 0xFFFFFFFF or entries == 0xFFFF:
        directory = min(size, directory)  # the real figure stands in the record of large archives; it cannot pass the file
    if directory > MAX_DIRECTORY_BYTES or (entries > MAX_PARTS and entries != 0xFFFF):
        happened = f"{name} holds too many parts to be a document."
        raise ExtractionError(happened, advice="Upload the files in it.", reason="too_large", retires=True)
