"""Digits of a number by the placeholders of a format: 0, # and ?, thousands, decimals, percents, exponents, fractions."""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from ingestion.extract.tabular.date_formats import Token

PLACEHOLDERS = "0#?"
# A workbook keeps so many digits of a number, and the general format shows so many decimals.
DIGITS = 15
GENERAL_DIGITS = 11
MAX_DECIMALS = 30
# Larger numbers are shown with an exponent, whatever the format says.
LARGEST = 1e21
_EXACT = Context(prec=64)


def general(number: float) -> str:
    """As a cell without a format shows it, but whole numbers never with an exponent: they are often names of things."""
    if isinstance(number, int):
        return str(number)
    if not math.isfinite(number):
        return ""
    if number == int(number) and abs(number) < 10**DIGITS:
        return str(int(number))
    if 1e-5 <= abs(number) < 1e11:
        decimals = max(0, GENERAL_DIGITS - 1 - max(0, math.floor(math.log10(abs(number))) + 1))
        return f"{number:.{decimals}f}".rstrip("0").rstrip(".")
    mantissa, _, exponent = f"{number:.5E}".partition("E")
    return f"{mantissa.rstrip('0').rstrip('.')}E{int(exponent):+03}"


class Figures:
    """One section of a format that shows a number; `tokens` are those of number_formats."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._general = any(kind == "general" for kind, _ in tokens)
        self._percents = sum(kind == "%" for kind, _ in tokens)
        whole, decimals, exponent = _divided(tokens)
        self._exponent_sign = next((sign for kind, sign in tokens if kind == "E"), None)
        self._fraction = self._exponent_sign is None and any(kind == "/" for kind, _ in tokens) and _has_places(tokens)
        self._whole, self._scale, self._grouped = _scaled(whole)
        self._scale += sum(kind == "," for kind, _ in decimals)
        self._decimals = decimals
        self._exponent = exponent
        self._places = min(sum(kind in PLACEHOLDERS for kind, _ in decimals), MAX_DECIMALS)
        self._tokens = tokens

    def show(self, magnitude: float, *, sign: str) -> str:
        if isinstance(magnitude, float) and not math.isfinite(magnitude):
            return ""
        if self._general:
            parts = (general(magnitude) if kind == "general" else text for kind, text in self._tokens if kind in ("general", "lit"))
            return (sign + "".join(parts)).strip()
        if not _has_places(self._tokens):
            return "".join(text for kind, text in self._tokens if kind in ("lit", "%", ".", ",", "/")).strip()
        if magnitude >= LARGEST and self._exponent_sign is None:
            return sign + general(magnitude)
        if self._fraction:
            return (sign + self._as_fraction(magnitude)).strip()
        number = Decimal(repr(magnitude)) * 100**self._percents / 1000**self._scale
        if self._exponent_sign is not None:
            return (sign + self._as_power(number)).strip()
        shown = self._as_decimal(number)
        # What is rounded to nothing has no sign.
        return (sign + shown).strip() if any(char in "123456789" for char in shown) else shown.strip()

    def _as_decimal(self, number: Decimal) -> str:
        number = self._rounded(number)
        digits, _, decimals = f"{number:f}".partition(".")
        return _filled_left(self._whole, digits.lstrip("0"), grouped=self._grouped) + _filled_right(self._decimals, decimals)

    def _rounded(self, number: Decimal) -> Decimal:
        return number.quantize(Decimal(1).scaleb(-self._places), rounding=ROUND_HALF_UP, context=_EXACT)

    def _as_power(self, number: Decimal) -> str:
        step = min(max(1, sum(kind in PLACEHOLDERS for kind, _ in self._whole)), DIGITS)
        power = number.adjusted() if number else 0
        power -= power % step if step > 1 else 0
        mantissa = number.scaleb(-power)
        if self._rounded(mantissa) >= 10**step:
            power += step
            mantissa = number.scaleb(-power)
        sign = "-" if power < 0 else "+" if self._exponent_sign == "+" else ""
        return f"{self._as_decimal(mantissa)}E{sign}{_filled_left(self._exponent, str(abs(power)) if power else '', grouped=False)}"

    def _as_fraction(self, magnitude: float) -> str:
        slash = next(place for place, (kind, _) in enumerate(self._tokens) if kind == "/")
        below = "".join(text for kind, text in self._tokens[slash + 1 :] if kind in PLACEHOLDERS or (kind == "lit" and text.isdecimal()))
        fixed = int(below) if below.isdecimal() and int(below) else 0
        exact = Fraction(repr(magnitude)) if math.isfinite(magnitude) else Fraction(0)
        value = Fraction(round(exact * fixed), fixed) if fixed else exact.limit_denominator(10 ** max(1, min(len(below), 6)) - 1)
        above = [kind for kind, _ in self._tokens[:slash] if kind in PLACEHOLDERS or kind == "lit"]
        mixed = "lit" in above and above[0] in PLACEHOLDERS
        whole, rest = divmod(value, 1) if mixed else (0, value)
        shown = f"{rest.numerator * (fixed // rest.denominator if fixed else 1)}/{fixed or rest.denominator}" if rest or not mixed else ""
        return " ".join(part for part in (str(whole) if whole or not shown else "", shown) if part)


def _divided(tokens: Sequence[Token]) -> tuple[list[Token], list[Token], list[Token]]:
    """What stands before the decimal point, after it, and after the exponent."""
    parts: tuple[list[Token], list[Token], list[Token]] = ([], [], [])
    place = 0
    for token in tokens:
        if token[0] == "E":
            place = 2
        elif token[0] == "." and place == 0:
            place = 1
            parts[1].append(token)
        else:
            parts[place].append(token)
    return parts


def _scaled(whole: Sequence[Token]) -> tuple[list[Token], int, bool]:
    """(the tokens without commas, how many thousands are left out, whether thousands are parted). Commas after the last digit leave out."""
    last = max((place for place, (kind, _) in enumerate(whole) if kind in PLACEHOLDERS), default=-1)
    commas = [place for place, (kind, _) in enumerate(whole) if kind == ","]
    scale = sum(place > last for place in commas) if last >= 0 else 0
    return [token for token in whole if token[0] != ","], scale, any(place < last for place in commas)


def _has_places(tokens: Sequence[Token]) -> bool:
    return any(kind in PLACEHOLDERS for kind, _ in tokens)


def _filled_left(tokens: Sequence[Token], digits: str, *, grouped: bool) -> str:
    """Digits from the right into the places; the first place takes all that are left."""
    out: list[str] = []
    left = sum(kind in PLACEHOLDERS for kind, _ in tokens)
    written = 0
    rest = digits

    def put(digit: str) -> None:
        nonlocal written
        if grouped and written and written % 3 == 0:
            out.append(",")
        out.append(digit)
        written += 1

    for kind, text in reversed(tokens):
        if kind not in PLACEHOLDERS:
            out.append(text[::-1])
            continue
        left -= 1
        taken, rest = (rest[-1:], rest[:-1]) if left else (rest, "")
        for digit in reversed(taken):
            put(digit)
        if not taken and kind == "0":
            put("0")
    if not any(kind in PLACEHOLDERS for kind, _ in tokens):
        for digit in reversed(rest):
            put(digit)
    return "".join(out)[::-1]


def _filled_right(tokens: Sequence[Token], decimals: str) -> str:
    """The decimal point is not shown without a digit behind it."""
    kept = decimals.rstrip("0")
    out: list[str] = []
    place = 0
    for kind, text in tokens:
        if kind in PLACEHOLDERS:
            digit = decimals[place : place + 1]
            if place < len(kept) or kind == "0":
                out.append(digit or "0")
            place += 1
        elif kind == ".":
            if kept or any(later == "0" for later, _ in tokens):
                out.append(".")
        elif kind != ",":
            out.append(text)
    return "".join(out)
