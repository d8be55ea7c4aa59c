"""The text of an RTF file as blocks: one pass over its tokens with a stack of groups."""

import re
from dataclasses import replace

from config.errors import ExtractionError
from ingestion.extract.inline import Run
from ingestion.extract.rtf_blocks import RtfBlocks
from ingestion.extract.rtf_state import CHARSETS, INFO_FIELDS, INTO, KNOWN, PAGES, UNSEEN, Into, State, Tables
from ingestion.extract.rtf_tokens import Kind, Token, tokens

MAX_GROUPS = 2_000
_TARGET = re.compile(r'\s*HYPERLINK\s+"([^"]+)"')
_SYMBOLS = {"~": "\u00a0", "_": "-", "-": "", "{": "{", "}": "}", "\\": "\\", ":": "", "|": "", "\t": " "}
_CHARS = {
    "emdash": "\u2014", "endash": "\u2013", "bullet": "\u2022", "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c",
    "rdblquote": "\u201d", "tab": " ", "line": "\n", "emspace": " ", "enspace": " ", "qmspace": " ", "softline": "\n", "lbr": "\n",
}  # fmt: skip


class RtfReader:
    def __init__(self, *, name: str, max_chars: int) -> None:
        self._name = name
        self.tables = Tables()
        self._blocks = RtfBlocks(self.tables, max_chars=max_chars)
        self._stack: list[State] = []
        self._state = State()
        self._bytes = bytearray()
        self._skip = 0  # characters that repeat a \u for readers without Unicode
        self._optional = False  # after \*
        self._text: list[str] = []  # of a font's or style's name, a field, a label
        self._number: int | None = None  # of the font or style that is being defined
        self._field = ""

    @property
    def markdown(self) -> str:
        return self._blocks.out.markdown

    @property
    def warnings(self) -> list[str]:
        return self._blocks.out.warnings

    @property
    def title(self) -> str:
        return self._blocks.title

    @property
    def first_heading(self) -> str:
        return self._blocks.first_heading

    def read(self, data: bytes) -> bool:
        """Whether there is more than was read."""
        for token in tokens(data):
            if self._blocks.out.full:
                return True
            self._take(token)
        self._flush()
        self._blocks.finish()
        return False

    def _take(self, token: Token) -> None:
        if token.kind is Kind.BYTES:
            self._add_bytes(token)
            return
        self._flush()
        if token.kind is Kind.OPEN:
            if len(self._stack) >= MAX_GROUPS:
                happened = f"{self._name} is nested too deeply to be read."
                raise ExtractionError(happened, advice="Save it again in a simpler form.", reason="damaged", retires=True)
            self._stack.append(self._state)
            self._state = replace(self._state)
        elif token.kind is Kind.CLOSE:
            self._close()
        elif token.kind is Kind.SYMBOL:
            self._symbol(token.word)
        else:
            self._word(token.word, token.number)

    def _close(self) -> None:
        ended = self._state
        self._state = self._stack.pop() if self._stack else State()
        self._skip, self._optional = 0, False
        if ended.into is self._state.into:
            if ended.into in (Into.FONTS, Into.STYLES):
                self._define(ended.into)
            return
        text = "".join(self._text)
        if ended.into is Into.LABEL:
            self._blocks.label = text.strip()
        elif ended.into is Into.FIELD:
            self._field += text
            match = _TARGET.match(self._field)
            self._state.target = match[1] if match else ""
        elif ended.into in (Into.HEADER, Into.FOOTER, Into.NOTE):
            self._blocks.leave()
        self._text.clear()

    def _define(self, into: Into) -> None:
        """A font's name is not needed; a style's says whether it makes headings."""
        if into is Into.STYLES and self._number is not None:
            self.tables.styles[self._number] = "".join(self._text).strip().rstrip(";")
        self._text.clear()
        self._number = None

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._optional = True
        elif self._skip and symbol in _SYMBOLS:
            self._skip -= 1
        else:
            self._add(_SYMBOLS.get(symbol, ""))

    def _word(self, word: str, number: int | None) -> None:
        state = self._state
        optional, self._optional = self._optional, False
        if word in UNSEEN or (optional and word not in KNOWN and word not in INTO):
            state.into = Into.NOWHERE
        elif state.into is Into.NOWHERE:
            if word in ("result", "ud") or (word == "shptxt" and state.is_drawing):
                state.into = Into.BODY
        elif state.into is Into.INFO and word in INFO_FIELDS:
            state.info = word
        elif word in INTO:
            self._enter(INTO[word])
        elif word == "u":
            self._add(chr((number or 0) % 0x10000))
            self._skip = state.skipped
        elif word in _CHARS:
            self._add(_CHARS[word])
        elif state.into is Into.BODY:
            self._body_word(word, number)
        else:
            self._other_word(word, number)

    def _enter(self, into: Into) -> None:
        if into in (Into.HEADER, Into.FOOTER, Into.NOTE):
            self._blocks.enter(into)
        elif into is Into.FIELD:
            self._field = ""
        self._text.clear()
        self._state.into = into

    def _other_word(self, word: str, number: int | None) -> None:
        state = self._state
        if state.into in (Into.HEADER, Into.FOOTER, Into.NOTE):
            self._body_word(word, number)
        elif word == "f" and state.into is Into.FONTS:
            self._number = number
        elif word == "fcharset" and self._number is not None:
            self.tables.fonts[self._number] = CHARSETS.get(number or 0, "")
        elif word == "s" and state.into is Into.STYLES:
            self._number = number
        elif word == "outlinelevel" and self._number is not None and number is not None:
            self.tables.levels[self._number] = number
        elif word == "f":
            state.font = number

    def _body_word(self, word: str, number: int | None) -> None:
        state, on = self._state, number != 0
        match word:
            case "b":
                state.bold = on
            case "i":
                state.italic = on
            case "v" | "deleted":
                state.hidden = on
            case "plain":
                state.bold = state.italic = state.hidden = False
                state.font = self.tables.default_font
            case "f":
                state.font = number
            case "deff":
                self.tables.default_font = state.font = number
            case "uc":
                state.skipped = min(max(0, 1 if number is None else number), 10)
            case "ansicpg":
                self.tables.encoding = f"cp{number}" if number not in (None, 0) else self.tables.encoding
            case "ansi" | "mac" | "pc" | "pca":
                self.tables.encoding = PAGES[word]
            case "info":
                state.into = Into.INFO
            case "shpinst":
                state.into, state.is_drawing = Into.NOWHERE, True
            case "shptxt":
                self._blocks.command("par", None)
            case "chftn":
                pass  # the note's own mark, which we write ourselves
            case _:
                self._blocks.command(word, number)

    def _add_bytes(self, token: Token) -> None:
        data = token.data
        if self._skip:
            passed = min(self._skip, len(data))
            self._skip -= passed
            data = data[passed:]
        if self._state.into is not Into.NOWHERE:
            self._bytes += data

    def _flush(self) -> None:
        if self._bytes:
            data = bytes(self._bytes)
            self._bytes.clear()
            self._add(_decoded(data, self._encoding()))

    def _encoding(self) -> str:
        font = self.tables.fonts.get(self._state.font, "") if self._state.font is not None else ""
        return font or self.tables.encoding

    def _add(self, text: str) -> None:
        state = self._state
        if not text or state.into is Into.NOWHERE:
            return
        if state.into in (Into.BODY, Into.HEADER, Into.FOOTER, Into.NOTE):
            if not state.hidden:
                self._blocks.add(Run(text, bold=state.bold, italic=state.italic, target=state.target))
        elif state.into is Into.INFO:
            if state.info:
                self.tables.info[state.info] = self.tables.info.get(state.info, "") + text
        else:
            self._text.append(text)


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding, "replace")
    except LookupError:
        return data.decode("cp1252", "replace")
