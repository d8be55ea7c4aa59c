"""What a person sees of a number in a workbook: format codes such as `#,##0.00;[Red]-0%;"none"`, compiled once for many cells."""

import re
from collections.abc import Callable
from functools import lru_cache

from ingestion.extract.tabular.date_formats import DateFormat, Token, date_token
from ingestion.extract.tabular.figures import Figures, general

MAX_CODE_CHARS = 1_000
MAX_SECTIONS = 4

_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?\d+(?:\.\d+)?)\]")
_CURRENCY = re.compile(r"\[\$([^\]-]*)(?:-[^\]]*)?\]")
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_TESTS: dict[str, Callable[[float, float], bool]] = {
    "<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__, "=": float.__eq__, "<>": float.__ne__,
}  # fmt: skip

_ACCOUNTS = '_(* #,##0{0}_);_(* \\(#,##0{0}\\);_(* "-"_);_(@_)'
# Those that a workbook names by number only. Days of a country's own form are days.
BUILT_IN: dict[int, str] = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0;-$#,##0", 6: "$#,##0;-$#,##0", 7: "$#,##0.00;-$#,##0.00",
    8: "$#,##0.00;-$#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy",
    16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm",
    37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
    41: _ACCOUNTS.format(""), 42: _ACCOUNTS.format(""), 43: _ACCOUNTS.format(".00"), 44: _ACCOUNTS.format(".00"),
    45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
} | dict.fromkeys((*range(27, 32), 36, *range(50, 55), 57, 58), "yyyy-mm-dd") | dict.fromkeys((32, 33, 34, 35, 55, 56), "h:mm")  # fmt: skip


class NumberFormat:
    def __init__(self, code: str) -> None:
        """Never fails: what cannot be understood shows numbers plainly."""
        self._plain = code.lower() == "general"
        parts = _split(code[:MAX_CODE_CHARS])[:MAX_SECTIONS]
        sections = [_Section(part) for part in parts]
        self._text = sections.pop() if len(sections) == 4 or (len(sections) > 1 and sections[-1].is_text) else None
        if self._text is None and len(sections) == 1 and sections[0].is_text:
            self._text = sections[0]
        self._sections = sections or [_Section("General")]
        self.date = self._sections[0].date
        """How values are to be taken: as dates by it, or as numbers (None)."""

    def show(self, number: float, *, from_1904: bool = False) -> str:
        if self._plain:
            return general(number)
        section, magnitude, sign = self._choose(number)
        if section.date is not None:
            return section.date.show(number, from_1904=from_1904) or general(number)
        return section.show(magnitude, sign=sign)

    def show_text(self, text: str) -> str:
        return self._text.show_text(text) if self._text is not None else text

    def _choose(self, number: float) -> tuple["_Section", float, str]:
        """The section for a number, what of it is written, and the sign before it."""
        sections = self._sections
        sign = "-" if number < 0 else ""
        if any(section.condition for section in sections):
            for section in sections:
                if section.condition is None or section.condition(number):
                    return section, abs(number), sign
            return sections[-1], abs(number), sign
        if number < 0 and len(sections) > 1:
            return sections[1], -number, ""
        if number == 0 and len(sections) > 2:
            return sections[2], number, ""
        return sections[0], abs(number), sign


@lru_cache(maxsize=1_000)
def number_format(code: str) -> NumberFormat:
    return NumberFormat(code)


class _Section:
    def __init__(self, code: str) -> None:
        self.condition: Callable[[float], bool] | None = None
        if match := _CONDITION.search(code):
            test, bound = _TESTS[match[1]], float(match[2])
            self.condition = lambda number: test(float(number), bound)
        tokens = _tokens(code)
        kinds = {kind for kind, _ in tokens}
        self.is_text = "@" in kinds
        self.date = DateFormat(tokens) if kinds & set("ymdhs") or "elapsed" in kinds else None
        self._tokens = tokens
        self._figures = Figures(tokens) if self.date is None else None

    def show(self, magnitude: float, *, sign: str) -> str:
        if self.is_text:
            return self.show_text(sign + general(magnitude))
        return self._figures.show(magnitude, sign=sign) if self._figures is not None else general(magnitude)

    def show_text(self, text: str) -> str:
        return "".join(text if kind == "@" else piece for kind, piece in self._tokens if kind in ("@", "lit"))


def _split(code: str) -> list[str]:
    """At semicolons that are no text."""
    parts, start, at = [], 0, 0
    while at < len(code):
        if code[at] == '"':
            at = _closed(code, at, '"')
        elif code[at] == "[":
            at = _closed(code, at, "]")
        elif code[at] in "\\_*":
            at += 2
        else:
            if code[at] == ";":
                parts.append(code[start:at])
                start = at + 1
            at += 1
    return [*parts, code[start:]]


def _closed(code: str, at: int, mark: str) -> int:
    end = code.find(mark, at + 1)
    return len(code) if end < 0 else end + 1


def _tokens(code: str) -> list[Token]:
    """("lit", text), ("@", ""), ("general", ""), parts of dates, and of figures: "0#?", ".", ",", "%", "E" with its sign, "/"."""
    tokens: list[Token] = []
    at = 0
    dated = _is_dated(code)
    while at < len(code):
        char = code[at]
        if char == '"':
            end = _closed(code, at, '"')
            tokens.append(("lit", code[at + 1 : end].removesuffix('"')))
        elif char == "[" and not _ELAPSED.match(code, at):
            end = _closed(code, at, "]")
            money = _CURRENCY.match(code, at)
            tokens.append(("lit", money[1] if money else ""))
        elif char in "\\_*":
            end = at + 2
            tokens.append(("lit", code[at + 1 : end] if char == "\\" else " " if char == "_" else ""))
        elif code[at : at + 7].lower() == "general":
            end = at + 7
            tokens.append(("general", ""))
        elif char == "@":
            end = at + 1
            tokens.append(("@", ""))
        elif dated and (found := date_token(code, at)):
            token, end = found
            tokens.append(token)
        elif not dated and char in "0#?.,%/":
            end = at + 1
            tokens.append((char, char))
        elif not dated and char in "Ee" and code[at + 1 : at + 2] in ("+", "-"):
            end = at + 2
            tokens.append(("E", code[at + 1]))
        else:
            end = at + 1
            tokens.append(("lit", char))
        at = end
    return tokens


_NO_DATE = re.compile(r'"[^"]*"?|\[(?!h+\]|m+\]|s+\])[^\]]*\]?|[\\_*].|General|E[+-]', re.IGNORECASE | re.DOTALL)


def _is_dated(code: str) -> bool:
    return bool(re.search(r"[ymdhs]|e(?![+-])", _NO_DATE.sub("", code), re.IGNORECASE))
