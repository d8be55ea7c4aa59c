"""RTF in messages: packed by [MS-OXRTFCP], and HTML written as RTF by [MS-OXRTFEX]."""

from ingestion.extract.rtf_tokens import Kind, Token, tokens

# What every packed text may refer to before it has said anything.
_BEGINNING = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArialTimes New "
    b"RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
PACKED, STORED = b"LZFu", b"MELA"
RING = 4_096
MAX_GROUPS = 2_000
_CHARS = {"par": "\r\n", "line": "\r\n", "tab": "\t", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•",
          "endash": "–", "emdash": "—"}  # fmt: skip
_TABLES = frozenset({"fonttbl", "colortbl", "stylesheet", "info", "pntext"})
_SYMBOLS = {"~": "&nbsp;", "_": "&shy;", "{": "{", "}": "}", "\\": "\\"}


def decompress(data: bytes, *, limit: int) -> bytes:
    """b"" for what is not packed so; no more than `limit` bytes come out. What is cut off ends early."""
    if len(data) < 16:
        return b""
    size, kind = min(int.from_bytes(data[4:8], "little"), limit), data[8:12]
    if kind == STORED:
        return data[16 : 16 + size]
    return _unpacked(data, size=size) if kind == PACKED else b""


def _unpacked(data: bytes, *, size: int) -> bytes:
    """A byte of eight bits says what follows: a byte as it is, or where in the last 4,096 bytes to copy from and how many."""
    ring = bytearray(_BEGINNING.ljust(RING, b" "))
    at, out, position = len(_BEGINNING), bytearray(), 16
    control = 1
    while len(out) < size:
        if control == 1:  # all eight bits are used up
            control = data[position] | 0x100 if position < len(data) else 0x100
            position += 1
        copies, control = control & 1, control >> 1
        if position + copies >= len(data):
            break
        if copies:
            pair = data[position] << 8 | data[position + 1]
            start, length = pair >> 4, (pair & 15) + 2
            if start == at:
                break  # that is how the end is said
        else:
            ring[at], start, length = data[position], at, 1
        position += 1 + copies
        for step in range(length):
            byte = ring[(start + step) % RING]  # which may be one that was written just now
            ring[at] = byte
            at = (at + 1) % RING
            out.append(byte)
    return bytes(out[:size])


def encapsulated_html(rtf: bytes) -> str | None:
    """The HTML that the RTF was made from; None when it was made from none."""
    if b"\\fromhtml" not in rtf[:1_000]:
        return None
    reader = _HtmlReader()
    for token in tokens(rtf):
        if len(reader.stack) > MAX_GROUPS:
            break
        reader.take(token)
    reader.flush()
    return "".join(reader.out)


class _HtmlReader:
    """Text is HTML's own, also in groups of htmltag; other optional groups, and what stands behind htmlrtf, only RTF shows."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.stack: list[bool] = []
        self._hidden = False
        self._optional = False
        self._raw = bytearray()
        self._encoding = "cp1252"
        self._skip = 0
        self._high = 0  # the first half of a character beyond 16 bits

    def take(self, token: Token) -> None:
        if token.kind is Kind.BYTES:
            data, self._skip = token.data[self._skip :], max(0, self._skip - len(token.data))
            if not self._hidden:
                self._raw += data
            return
        self.flush()
        if token.kind is Kind.OPEN:
            self.stack.append(self._hidden)
        elif token.kind is Kind.CLOSE:
            self._hidden = self.stack.pop() if self.stack else False
        elif token.kind is Kind.SYMBOL:
            self._add(_SYMBOLS.get(token.word, ""))
        else:
            self._word(token.word, token.number)
        self._optional = token.kind is Kind.SYMBOL and token.word == "*"

    def flush(self) -> None:
        if self._raw:
            try:
                self._add(bytes(self._raw).decode(self._encoding, "replace"))
            except LookupError:
                self._add(bytes(self._raw).decode("cp1252", "replace"))
            self._raw.clear()

    def _word(self, word: str, number: int | None) -> None:
        if word == "htmltag":
            self._hidden = False
        elif word == "htmlrtf":
            self._hidden = number != 0
        elif self._optional or word in _TABLES:
            self._hidden = True
        elif word == "ansicpg" and number:
            self._encoding = "utf-8" if number == 65001 else f"cp{number}"
        elif word == "u":
            self._unit((number or 0) % 0x10000)
        else:
            self._add(_CHARS.get(word, ""))

    def _unit(self, unit: int) -> None:
        self._skip = 1
        if 0xD800 <= unit < 0xDC00:
            self._high = unit
        elif 0xDC00 <= unit < 0xE000:
            self._add(f"&#{0x10000 + ((self._high - 0xD800) << 10) + unit - 0xDC00};" if self._high else "")
            self._high = 0
        else:
            self._add(f"&#{unit};")

    def _add(self, text: str) -> None:
        if not self._hidden and text:
            self.out.append(text)
