"""What the cells of a column are together: a type that holds each of them, as a careful person would say. What is not sure stays text."""

import datetime as dt
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from ingestion.datasets.names import literal
from ingestion.datasets.shapes import MAX_DIGITS, NULL_WORDS, Shape, first_numbers, shape_of

# A decimal of so many places is exact; more are a measurement.
MAX_SCALE = 6
REMEMBERED = 2_048
_PLAIN = frozenset({Shape.WHOLE, Shape.POINT})
_GROUPS = {
    Shape.COMMA_GROUPS: (_PLAIN | {Shape.COMMA_GROUPS, Shape.COMMA_OR_GROUPS}, ",", "."),
    Shape.SPACE_GROUPS: (_PLAIN | {Shape.SPACE_GROUPS}, " \u00a0\u202f", "."),
    Shape.POINT_GROUPS: (frozenset({Shape.WHOLE, Shape.POINT_GROUPS, Shape.COMMA}), ".", ","),
    Shape.COMMA: (frozenset({Shape.WHOLE, Shape.COMMA, Shape.COMMA_OR_GROUPS}), "", ","),
}
_DAY_FORMATS = {
    Shape.SLASHED_DATE: ("%Y/%m/%d",),
    Shape.DOTTED_DAY: ("%d.%m.%Y",),
    Shape.DAY_MONTH: ("%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%B-%Y"),
    Shape.MONTH_DAY: ("%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y"),
}
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f")


_NULLS = "(" + ", ".join(literal(word) for word in sorted(NULL_WORDS)) + ")"


@dataclass(frozen=True, slots=True)
class Decision:
    """A DuckDB type, and the expression that makes a value of it from the text `{}`. With `null_words` some cells are words for nothing."""

    type: str
    expression: str = "{}"
    null_words: bool = False

    def typed(self, column: str) -> str:
        """The expression over a column of texts."""
        text = f"CASE WHEN lower({column}) IN {_NULLS} THEN NULL ELSE {column} END" if self.null_words else column
        return self.expression.replace("{}", text)

    def loses(self, column: str) -> str:
        """The condition that a cell says something which is no value of the type."""
        says = f"{column} IS NOT NULL" + (f" AND lower({column}) NOT IN {_NULLS}" if self.null_words else "")
        return f"{says} AND TRY({self.typed(column)}) IS NULL"


TEXT = Decision("VARCHAR")


@dataclass(slots=True)
class Guess:
    """Of one column. Give it every cell's text, without white space around it; not the empty ones."""

    count: int = 0
    shapes: set[Shape] = field(default_factory=set)
    digits: int = 0
    scale: int = 0
    day_first: bool = False
    month_first: bool = False
    answers: set[str] = field(default_factory=set)
    is_text: bool = False
    """Nothing that comes can change it: asked for every cell, so it is no look into `shapes`."""
    _known: dict[str, Shape] = field(default_factory=dict)

    def add(self, text: str) -> None:
        self.count += 1
        if self.is_text or text in self._known:
            return
        shape = shape_of(text)
        if len(self._known) < REMEMBERED:
            self._known[text] = shape
        if shape in (Shape.WHOLE, Shape.POINT, Shape.COMMA, *_GROUPS, Shape.COMMA_OR_GROUPS):
            self._measure(text, shape)
        elif shape in (Shape.SLASHED_DAY, Shape.DASHED_DAY, Shape.SLASHED_TIMESTAMP):
            first, second = first_numbers(text)
            self.day_first |= first > 12
            self.month_first |= second > 12
        elif shape == Shape.YES_NO:
            self.answers.add(text.lower())
        self.shapes.add(shape)
        if shape == Shape.TEXT:
            self.is_text = True
            self._known.clear()

    def decide(self) -> Decision:
        seen = self.shapes - {Shape.NULL}
        if not seen or self.is_text:
            return TEXT
        decision = self._number(seen) or self._day(seen) or self._clock(seen) or self._truth(seen)
        if decision is None:
            return TEXT
        return replace(decision, null_words=Shape.NULL in self.shapes)

    def _measure(self, text: str, shape: Shape) -> None:
        mark = {Shape.POINT: ".", Shape.COMMA_GROUPS: ".", Shape.COMMA: ",", Shape.POINT_GROUPS: ","}.get(shape)
        if shape == Shape.SPACE_GROUPS:
            mark = "," if "," in text else "."
        places = len(text) - text.rfind(mark) - 1 if mark and mark in text else 0
        digits = sum(char.isdigit() for char in text)
        self.digits = max(self.digits, digits - places)
        self.scale = max(self.scale, places)

    def _number(self, seen: set[Shape]) -> Decision | None:
        if seen <= _PLAIN:
            return self._numeric("{}", scale=self.scale)
        if seen <= _PLAIN | {Shape.SCIENTIFIC}:
            return Decision("DOUBLE", "CAST({} AS DOUBLE)")
        for shape, (allowed, dropped, point) in _GROUPS.items():
            if shape in seen and seen <= allowed:
                stripped = f"translate({{}}, {literal(dropped)}, '')" if dropped else "{}"
                if shape == Shape.SPACE_GROUPS or point == ",":
                    stripped = f"replace({stripped}, ',', '.')"
                # What could have been thousands is a fraction after all.
                least = len("234") if shape == Shape.COMMA and Shape.COMMA_OR_GROUPS in seen else 0
                return self._numeric(stripped, scale=max(self.scale, least))
        return None

    def _numeric(self, text: str, *, scale: int) -> Decision:
        if not scale:
            return Decision("BIGINT", f"CAST({text} AS BIGINT)") if self.digits <= MAX_DIGITS else TEXT
        if scale > MAX_SCALE or self.digits + scale > MAX_DIGITS:
            return Decision("DOUBLE", f"CAST({text} AS DOUBLE)") if self.digits <= MAX_DIGITS else TEXT
        kind = f"DECIMAL({MAX_DIGITS},{scale})"
        return Decision(kind, f"CAST({text} AS {kind})")

    def _day(self, seen: set[Shape]) -> Decision | None:
        order = (
            ("%d", "%m") if self.day_first and not self.month_first else ("%m", "%d") if self.month_first and not self.day_first else None
        )
        if seen == {Shape.DATE}:
            return Decision("DATE", "CAST({} AS DATE)")
        if seen <= {Shape.DATE, Shape.TIMESTAMP}:
            return Decision("TIMESTAMP", "CAST({} AS TIMESTAMP)")
        if seen == {Shape.ZONED}:
            return Decision("TIMESTAMP WITH TIME ZONE", "CAST({} AS TIMESTAMPTZ)")
        if len(seen) == 1 and (formats := _DAY_FORMATS.get(next(iter(seen)))):
            return Decision("DATE", f"CAST(strptime({{}}, {_list(formats)}) AS DATE)")
        for mark, day, timestamp in (
            (".", Shape.DOTTED_DAY, Shape.DOTTED_TIMESTAMP),
            ("/", Shape.SLASHED_DAY, Shape.SLASHED_TIMESTAMP),
            ("-", Shape.DASHED_DAY, Shape.DASHED_DAY),
        ):
            if seen <= {day, timestamp}:
                parts = ("%d", "%m") if mark == "." else order
                if parts is None:
                    return None  # the third of April, or the fourth of March
                written = mark.join([*parts, "%Y"])
                if seen == {day}:
                    return Decision("DATE", f"CAST(strptime({{}}, {_list((written,))}) AS DATE)")
                return Decision("TIMESTAMP", f"strptime({{}}, {_list((written, *(f'{written} {clock}' for clock in _CLOCKS)))})")
        return None

    def _clock(self, seen: set[Shape]) -> Decision | None:
        return Decision("TIME", "CAST(strptime({}, " + _list(_CLOCKS) + ") AS TIME)") if seen == {Shape.TIME} else None

    def _truth(self, seen: set[Shape]) -> Decision | None:
        if seen == {Shape.TRUE_FALSE}:
            return Decision("BOOLEAN", "CAST(lower({}) AS BOOLEAN)")
        # A column of NO alone may be of Norway.
        if seen == {Shape.YES_NO} and len(self.answers) == 2:
            return Decision("BOOLEAN", "(lower({}) = 'yes')")
        return None


def text_of(value: Any) -> str:
    """A cell as the text that is typed again with its column; "" for an empty one. Numbers and times of a format that knows them come back
    as they were."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else "" if value != value else repr(value)
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else ""
    if isinstance(value, dt.datetime):
        # A workbook knows no dates, only times at midnight.
        is_date = value.time() == dt.time() and value.tzinfo is None
        return value.date().isoformat() if is_date else value.isoformat(sep=" ")
    if isinstance(value, bytes):
        return value.hex()
    return str(value).strip()


def _list(formats: tuple[str, ...]) -> str:
    return "[" + ", ".join(literal(each) for each in formats) + "]"
