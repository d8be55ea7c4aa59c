"""The properties of Outlook messages, recipients and attachments ([MS-OXMSG]): each in a stream of its own, or in a table of short ones."""

import codecs
import struct
from collections.abc import Iterator
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from config.errors import ExtractionError
from ingestion.extract.base import MEBIBYTE
from ingestion.extract.encodings import decode

if TYPE_CHECKING:
    import olefile

TABLE = "__properties_version1.0"
ENTRY_BYTES = 16
STRING, STRING8, BINARY, OBJECT = "001F", "001E", "0102", "000D"
# Where the entries of the table begin: after the head of a message, of one inside of another, of a recipient or attachment.
MESSAGE, INNER, PART = 32, 24, 8
CODE_PAGES = (0x3FDE, 0x3FFD)
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_PAGES = {65001: "utf-8", 20127: "ascii", 28591: "latin-1", 28592: "iso8859-2", 28605: "iso8859-15", 20866: "koi8-r", 21866: "koi8-u",
          50220: "iso2022_jp", 51932: "euc_jp", 51949: "euc_kr", 936: "gb18030", 54936: "gb18030", 52936: "hz"}  # fmt: skip


class Storage:
    """A message, recipient or attachment. What is read of all of them together is counted."""

    def __init__(self, container: "olefile.OleFileIO", *, name: str, allowed: int) -> None:
        self.name = name
        self.depth = 0
        self._container = container
        self._allowed = allowed
        self._spent = [0]
        self._path: tuple[str, ...] = ()
        self._head = MESSAGE
        self._entries = self._list()

    def properties(self) -> "Properties":
        return Properties(self, frozenset(self._entries), head=self._head)

    def below(self, prefix: str, *, most: int) -> Iterator["Storage"]:
        """Recipients or attachments."""
        for entry in [entry for entry in self._entries if entry.startswith(prefix)][:most]:
            yield self._at(entry, head=PART, depth=self.depth)

    def inside(self, number: int) -> "Storage | None":
        """The message that a property holds."""
        entry = f"__substg1.0_{number:04X}{OBJECT}"
        found = self._at(entry, head=INNER, depth=self.depth + 1) if entry in self._entries else None
        return found if found is not None and TABLE in found._entries else None

    def read(self, entry: str) -> bytes:
        path = [*self._path, entry]
        self._spent[0] += self._container.get_size(path)
        if self._spent[0] > self._allowed:
            happened = f"{self.name} unpacks to more than {self._allowed // MEBIBYTE} MiB."
            raise ExtractionError(happened, advice="Split it into smaller ones.", reason="too_large", retires=True)
        return self._container.openstream(path).read()

    def _list(self) -> list[str]:
        depth = len(self._path)
        entries = self._container.listdir(streams=True, storages=True)
        return [entry[depth] for entry in entries if len(entry) == depth + 1 and tuple(entry[:depth]) == self._path]

    def _at(self, entry: str, *, head: int, depth: int) -> "Storage":
        found = copy(self)
        found._path, found._head, found.depth = (*self._path, entry), head, depth
        found._entries = found._list()
        return found


class Properties:
    def __init__(self, storage: Storage, entries: frozenset[str], *, head: int) -> None:
        self.name = storage.name
        self._storage = storage
        self._entries = entries
        self._short: dict[int, bytes] = {}
        table = storage.read(TABLE) if TABLE in entries else b""
        for at in range(head, len(table) - ENTRY_BYTES + 1, ENTRY_BYTES):
            _, number = struct.unpack_from("<HH", table, at)
            self._short[number] = table[at + 8 : at + 16]
        self._charset = next((page for number in CODE_PAGES if (page := _charset(self.number(number)))), "")

    def text(self, number: int) -> str:
        """ "" where there is none."""
        if (raw := self._stream(number, STRING)) is not None:
            return raw.decode("utf-16-le", "replace").rstrip("\0")
        raw = self._stream(number, STRING8)
        return "" if raw is None else decode(raw.rstrip(b"\0"), declared=(self._charset,)).text

    def binary(self, number: int) -> bytes:
        return self._stream(number, BINARY) or b""

    def markup(self, number: int) -> tuple[bytes, str]:
        """Text that says its own encoding, with the one that the message says; it may be a string as well."""
        if (raw := self._stream(number, BINARY)) is not None:
            return raw, self._charset
        return self.text(number).encode("utf-8", "replace"), "utf-8"

    def number(self, number: int) -> int:
        return int.from_bytes(self._short.get(number, b"")[:4], "little")

    def flag(self, number: int) -> bool:
        return self._short.get(number, b"")[:1] not in (b"", b"\0")

    def time(self, number: int) -> str:
        """As ISO 8601; "" where there is none."""
        ticks = int.from_bytes(self._short.get(number, b""), "little")
        try:
            return (_EPOCH + timedelta(microseconds=ticks // 10)).isoformat(sep=" ", timespec="seconds") if ticks else ""
        except OverflowError:
            return ""

    def _stream(self, number: int, kind: str) -> bytes | None:
        entry = f"__substg1.0_{number:04X}{kind}"
        return self._storage.read(entry) if entry in self._entries else None


def _charset(page: int) -> str:
    if not page:
        return ""
    name = _PAGES.get(page, f"cp{page}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""
