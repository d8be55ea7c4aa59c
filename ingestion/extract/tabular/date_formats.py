"""Dates and times of a workbook: numbers of days, written by a format.

A full day is written as 2024-03-04 whatever the order of its parts: 04/03/2024 is another day in another country. All else is written as it
is shown."""

import datetime as dt
import re
from collections.abc import Sequence

SECONDS_PER_DAY = 86_400
# The last day of the year 9999.
LAST_DAY = 2_958_465
# Lotus 1-2-3 took 1900 for a leap year, and workbooks keep the day that never was.
LOTUS_DAY = 60
FIRST_1900, FIRST_1904 = dt.datetime(1899, 12, 30), dt.datetime(1904, 1, 1)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

Token = tuple[str, str]


def to_datetime(serial: float, *, from_1904: bool) -> dt.datetime | None:
    """None for a number that is no day of the calendar. To the millisecond, as workbooks are."""
    if not 0 <= serial <= LAST_DAY + 1:
        return None
    base = FIRST_1904 if from_1904 else FIRST_1900
    if not from_1904 and serial < LOTUS_DAY:
        base += dt.timedelta(days=1)
    try:
        return base + dt.timedelta(milliseconds=round(serial * SECONDS_PER_DAY * 1_000))
    except OverflowError:
        return None


class DateFormat:
    """A section of a number format that shows a date, a time or a span of time. `tokens` are ("lit", text), ("elapsed", pattern) and
    (one of "ymdhsfa", pattern)."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = _with_minutes(tokens)
        kinds = {kind for kind, _ in self._tokens}
        self.elapsed = "elapsed" in kinds
        self.has_time = bool(kinds & {"h", "min", "s", "elapsed"})
        self.has_day = bool(kinds & {"y", "m", "d"})
        self._is_full_day = {"y", "m", "d"} <= kinds
        self._half_days = "a" in kinds
        self._fraction = next((len(text) for kind, text in self._tokens if kind == "f"), 0)
        self._shows_seconds = "s" in kinds

    def value(self, serial: float, *, from_1904: bool) -> dt.date | dt.datetime | dt.time | dt.timedelta | float:
        if self.elapsed:
            return dt.timedelta(milliseconds=round(serial * SECONDS_PER_DAY * 1_000)) if abs(serial) <= LAST_DAY else serial
        moment = to_datetime(serial, from_1904=from_1904)
        if moment is None:
            return serial
        if serial < 1 and not self.has_day:
            return moment.time()
        return moment if self.has_time or moment.time() != dt.time() else moment.date()

    def show(self, serial: float, *, from_1904: bool) -> str | None:
        """None for a number that is no date."""
        if self.elapsed:
            return self._written(dt.datetime(1900, 1, 1), serial) if abs(serial) <= LAST_DAY else None
        step = 10**-self._fraction
        rounded = round(serial * SECONDS_PER_DAY / step) * step / SECONDS_PER_DAY
        moment = to_datetime(rounded, from_1904=from_1904)
        if moment is None:
            return None
        if not self._is_full_day:
            return self._written(moment, serial)
        day = moment.date().isoformat()
        if not self.has_time:
            return day
        time = moment.strftime("%H:%M:%S" if self._shows_seconds else "%H:%M")
        fraction = f".{moment.microsecond:06}"[: self._fraction + 1] if self._fraction else ""
        return f"{day} {time}{fraction}"

    def _written(self, moment: dt.datetime, serial: float) -> str:
        units = round(abs(serial) * SECONDS_PER_DAY * 10**self._fraction)
        seconds = units // 10**self._fraction
        parts = ["-" if serial < 0 and self.elapsed else ""]
        for kind, pattern in self._tokens:
            match kind:
                case "elapsed":
                    count = {"h": seconds // 3600, "m": seconds // 60, "s": seconds}[pattern[0]]
                    parts.append(f"{count:0{len(pattern)}}")
                case "f":
                    parts.append(f".{units % 10**self._fraction:0{self._fraction}}")
                case "lit":
                    parts.append(pattern)
                case _ if self.elapsed:
                    parts.append(_two({"min": seconds // 60 % 60, "s": seconds % 60}.get(kind, seconds // 3600 % 24), pattern))
                case _:
                    parts.append(_part(kind, pattern, moment, self._half_days))
        return "".join(parts).strip()


def _part(kind: str, pattern: str, moment: dt.datetime, half_days: bool) -> str:
    match kind:
        case "y":
            return str(moment.year) if len(pattern) > 2 else f"{moment.year % 100:02}"
        case "m":
            name = _MONTHS[moment.month - 1]
            return _two(moment.month, pattern) if len(pattern) < 3 else {3: name[:3], 5: name[0]}.get(len(pattern), name)
        case "d":
            name = _DAYS[moment.weekday()]
            return _two(moment.day, pattern) if len(pattern) < 3 else name[:3] if len(pattern) == 3 else name
        case "h":
            return _two(moment.hour % 12 or 12 if half_days else moment.hour, pattern)
        case "min":
            return _two(moment.minute, pattern)
        case "s":
            return _two(moment.second, pattern)
        case _:
            return "AM" if moment.hour < 12 else "PM"


def _two(number: int, pattern: str) -> str:
    return f"{number:02}" if len(pattern) > 1 else str(number)


def _with_minutes(tokens: Sequence[Token]) -> list[Token]:
    """An m beside hours or seconds is minutes."""
    timed = [place for place, (kind, _) in enumerate(tokens) if kind in "ymdhs" or kind == "elapsed"]
    out = list(tokens)
    for before, place, after in zip([None, *timed], timed, [*timed[1:], None], strict=False):
        kind, pattern = tokens[place]
        if kind != "m" or len(pattern) > 2:
            continue
        follows = before is not None and (tokens[before][0] == "h" or tokens[before] in (("elapsed", "h"), ("elapsed", "hh")))
        if follows or (after is not None and tokens[after][0] == "s"):
            out[place] = ("min", pattern)
    return out


_DATE_TOKEN = re.compile(r"\[(h+|m+|s+)\]|AM/PM|A/P|上午/下午|y+|e+|m+|d+|h+|s+|g+|b+|\.0+", re.IGNORECASE)


def date_token(code: str, at: int) -> tuple[Token, int] | None:
    """The token of a date format that begins there, and where it ends."""
    match = _DATE_TOKEN.match(code, at)
    if match is None:
        return None
    text = match[0].lower()
    if match[1]:
        token = ("elapsed", match[1].lower())
    elif text[0] in "a上":
        token = ("a", text)
    elif text[0] == ".":
        token = ("f", text[1:])
    elif text[0] in "eb":
        token = ("y", "yyyy")
    elif text[0] == "g":
        token = ("lit", "")
    else:
        token = (text[0], text)
    return token, match.end()
