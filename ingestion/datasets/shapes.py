"""What a cell's text looks like: a number, a date, a time, nothing, or just text. One expression tells, and the calendar has a say."""

import datetime as dt
import re
from enum import StrEnum

MAX_DIGITS = 18  # more are an identifier, and no number that anybody counts with
MAX_TEXT = 64  # longer ones are text


class Shape(StrEnum):
    NULL = "null"  # a word that stands for nothing
    TRUE_FALSE = "true_false"
    YES_NO = "yes_no"
    WHOLE = "whole"
    POINT = "point"  # 12.50
    COMMA = "comma"  # 12,50
    COMMA_OR_GROUPS = "comma_or_groups"  # 1,234: nobody knows
    COMMA_GROUPS = "comma_groups"  # 1,234,567 and 1,234.50
    POINT_GROUPS = "point_groups"  # 1.234.567 and 1.234,50
    SPACE_GROUPS = "space_groups"  # 1 234 567 and 1 234,50
    SCIENTIFIC = "scientific"
    DATE = "date"  # 2024-08-31
    SLASHED_DATE = "slashed_date"  # 2024/08/31
    DOTTED_DAY = "dotted_day"  # 31.8.2024
    SLASHED_DAY = "slashed_day"  # 31/08/2024 or 08/31/2024
    DASHED_DAY = "dashed_day"  # 31-08-2024 or 08-31-2024
    DAY_MONTH = "day_month"  # 31 Aug 2024, 31-Aug-2024
    MONTH_DAY = "month_day"  # Aug 31, 2024
    TIMESTAMP = "timestamp"  # 2024-08-31 12:30, T between, seconds and fractions
    ZONED = "zoned"  # the same with Z or an offset
    DOTTED_TIMESTAMP = "dotted_timestamp"
    SLASHED_TIMESTAMP = "slashed_timestamp"
    TIME = "time"
    TEXT = "text"


# In columns that otherwise hold numbers, dates or times; in a column of texts they are texts.
NULL_WORDS = frozenset(
    {"null", "(null)", "na", "n/a", "#n/a", "#na", "nan", "none", "nil", "-", "--", "—", "–", "?", "\\n", "#div/0!", "#value!", "#ref!"}
    | {"#name?", "#null!", "#num!", "."}
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    "|dec(?:ember)?)"
)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?"
_SPACES = "[ \u00a0\u202f]"
_WHOLE = r"-?(?:0|[1-9]\d*)"
_PATTERNS = {
    Shape.WHOLE: _WHOLE,
    Shape.POINT: rf"{_WHOLE}\.\d+|-?\.\d+",
    Shape.DATE: r"\d{4}-\d\d-\d\d",
    Shape.TIMESTAMP: rf"\d{{4}}-\d\d-\d\d[ T]{_CLOCK}",
    Shape.TRUE_FALSE: "true|false",
    Shape.YES_NO: "yes|no",
    Shape.COMMA_OR_GROUPS: r"-?[1-9]\d{0,2},\d{3}",
    Shape.COMMA: rf"{_WHOLE},\d+",
    Shape.COMMA_GROUPS: r"-?[1-9]\d{0,2}(?:,\d{3})+\.\d+|-?[1-9]\d{0,2}(?:,\d{3}){2,}",
    Shape.POINT_GROUPS: r"-?[1-9]\d{0,2}(?:\.\d{3})+,\d+|-?[1-9]\d{0,2}(?:\.\d{3}){2,}",
    Shape.SPACE_GROUPS: rf"-?[1-9]\d{{0,2}}(?:{_SPACES}\d{{3}})+(?:[.,]\d+)?",
    Shape.SCIENTIFIC: r"-?\d\.\d+e[+-]?\d{1,3}|-?\de[+-]\d{1,3}",
    Shape.SLASHED_DATE: r"\d{4}/\d\d?/\d\d?",
    Shape.DOTTED_DAY: r"\d\d?\.\d\d?\.\d{4}",
    Shape.SLASHED_DAY: r"\d\d?/\d\d?/\d{4}",
    Shape.DASHED_DAY: r"\d\d?-\d\d?-\d{4}",
    Shape.DAY_MONTH: rf"\d\d?[ -]{_MONTH}[ -]\d{{4}}",
    Shape.MONTH_DAY: rf"{_MONTH} \d\d?,? \d{{4}}",
    Shape.ZONED: rf"\d{{4}}-\d\d-\d\d[ T]{_CLOCK} ?(?:z|utc|[+-]\d\d(?::?\d\d)?)",
    Shape.DOTTED_TIMESTAMP: rf"\d\d?\.\d\d?\.\d{{4}} {_CLOCK}",
    Shape.SLASHED_TIMESTAMP: rf"\d\d?/\d\d?/\d{{4}} {_CLOCK}",
    Shape.TIME: _CLOCK,
}
_SHAPE = re.compile("|".join(f"(?P<{shape}>{pattern})" for shape, pattern in _PATTERNS.items()), re.IGNORECASE)
_YEAR_FIRST = frozenset({Shape.DATE, Shape.TIMESTAMP, Shape.ZONED, Shape.SLASHED_DATE})
_DAY_FIRST = frozenset({Shape.DOTTED_DAY, Shape.DOTTED_TIMESTAMP})
_ANY_FIRST = frozenset({Shape.SLASHED_DAY, Shape.DASHED_DAY, Shape.SLASHED_TIMESTAMP})
DAYS = _YEAR_FIRST | _DAY_FIRST | _ANY_FIRST | {Shape.DAY_MONTH, Shape.MONTH_DAY}
_NUMBERS = re.compile(r"\d+")


def shape_of(text: str) -> Shape:
    """Of a text without white space around it; not empty. A day that no calendar has is a text."""
    if len(text) > MAX_TEXT:
        return Shape.TEXT
    found = _SHAPE.fullmatch(text)
    if found is None:
        return Shape.NULL if text.lower() in NULL_WORDS else Shape.TEXT
    shape = Shape(found.lastgroup or "")
    return shape if shape not in DAYS or _is_day(text, shape) else Shape.TEXT


def first_numbers(text: str) -> tuple[int, int]:
    """The first two numbers of a date whose order is open."""
    first, second = _NUMBERS.findall(text)[:2]
    return int(first), int(second)


def _is_day(text: str, shape: Shape) -> bool:
    numbers = [int(number) for number in _NUMBERS.findall(text)[:3]]
    if shape in _YEAR_FIRST:
        return _exists(*numbers)
    if shape in _DAY_FIRST:
        return _exists(numbers[2], numbers[1], numbers[0])
    if shape in _ANY_FIRST:
        one, other, year = numbers
        return _exists(year, one, other) or _exists(year, other, one)
    month = next(place for place, name in enumerate(MONTHS, start=1) if name in text.lower())
    return _exists(numbers[1], month, numbers[0])


def _exists(year: int, month: int, day: int) -> bool:
    try:
        dt.date(year, month, day)
    except ValueError:
        return False
    return True
