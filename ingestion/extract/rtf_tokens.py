"""RTF as tokens: groups, control words, bytes of text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

_TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?[0-9]{1,10})? ?"  # a control word; one space after it belongs to it
    rb"|\\'([0-9A-Fa-f]{2})"
    rb"|\\(.)"
    rb"|([{}])"
    rb"|([^\\{}\r\n\0]+)"
    rb"|[\r\n\0]+|\\",
    re.DOTALL,
)


class Kind(Enum):
    OPEN = auto()
    CLOSE = auto()
    WORD = auto()
    SYMBOL = auto()
    BYTES = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`word` of a control word or symbol, `number` its parameter, `data` of bytes; `is_escaped` says that they were written as \\'hh."""

    kind: Kind
    word: str = ""
    number: int | None = None
    data: bytes = b""
    is_escaped: bool = False


_OPEN, _CLOSE = Token(Kind.OPEN), Token(Kind.CLOSE)


def tokens(data: bytes) -> Iterator[Token]:
    """What is binary (`\\bin`) is passed over: pictures are no text."""
    position, end = 0, len(data)
    while position < end:
        match = _TOKEN.match(data, position)
        if match is None:  # pragma: no cover - the expression takes any byte
            return
        position = match.end()
        word, number, escaped, symbol, brace, text = match.groups()
        if text is not None:
            yield Token(Kind.BYTES, data=text)
        elif brace is not None:
            yield _OPEN if brace == b"{" else _CLOSE
        elif word is not None:
            value = int(number) if number is not None else None
            if word == b"bin":
                position += min(max(0, value or 0), end - position)
            else:
                yield Token(Kind.WORD, word.decode("ascii"), value)
        elif escaped is not None:
            yield Token(Kind.BYTES, data=bytes((int(escaped, 16),)), is_escaped=True)
        elif symbol is not None:
            yield Token(Kind.WORD, "par") if symbol in b"\r\n" else Token(Kind.SYMBOL, symbol.decode("latin-1"))
