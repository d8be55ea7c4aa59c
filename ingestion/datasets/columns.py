"""Columns of a dataset, and what the columns of several files are together: added and widened, or refused by name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
# Digits that each integer needs, so that integers of all widths have one order.
_INTEGERS = {
    "TINYINT": 3, "UTINYINT": 3, "SMALLINT": 5, "USMALLINT": 5, "INTEGER": 10, "UINTEGER": 10, "BIGINT": 19, "UBIGINT": 20, "HUGEINT": 39,
    "UHUGEINT": 39,
}  # fmt: skip
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_FLOATS = ("FLOAT", "DOUBLE")
_TIMESTAMPS = ("DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS")
MAX_DECIMAL_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is DuckDB's word for it. Without any value (`is_empty`) it fits every other type."""

    name: str
    type: str
    is_empty: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(value["name"], value["type"], bool(value.get("is_empty")))


class SchemaDrift(Exception):
    """The columns of a file do not fit those that are there; the message names column and types."""


def merge_columns(known: Sequence[Column], new: Sequence[Column]) -> list[Column]:
    """What both are together, in the order of the known ones, added ones behind. Names are compared without their case, as SQL does.

    Raises SchemaDrift where a column has types that no wider one holds, and where the two share no column at all.
    """
    if not known or not new:
        return list(known or new)
    coming = {column.name.casefold(): column for column in new}
    shared = [column for column in known if column.name.casefold() in coming]
    if not shared:
        raise SchemaDrift(f"none of its columns ({_listed(new)}) is one of the dataset ({_listed(known)})")
    merged = [_merge(column, coming.pop(column.name.casefold(), None)) for column in known]
    return merged + list(coming.values())


def _merge(known: Column, new: Column | None) -> Column:
    if new is None:
        return known
    if known.is_empty or new.is_empty:
        filled = new if known.is_empty else known
        return Column(known.name, filled.type, known.is_empty and new.is_empty)
    widened = widen(known.type, new.type)
    if widened is None:
        raise SchemaDrift(f"its column “{new.name}” is {told(new.type)}, in the dataset it is {told(known.type)}")
    return Column(known.name, widened)


def widen(one: str, other: str) -> str | None:
    """The type that holds the values of both without loss (of integers and decimals in DOUBLE: of digits beyond 15), or None."""
    if one == other:
        return one
    kinds = {one, other}
    if kinds <= set(_TIMESTAMPS):
        return "TIMESTAMP"
    if not all(_is_number(kind) for kind in kinds):
        return None
    if kinds & set(_FLOATS):
        return "DOUBLE"
    if kinds <= _INTEGERS.keys():
        digits = max(_INTEGERS[kind] + kind.startswith("U") for kind in kinds)
        return next((kind for kind in _SIGNED if _INTEGERS[kind] >= digits), "HUGEINT")
    (first_whole, first_scale), (second_whole, second_scale) = map(_digits, (one, other))
    scale = max(first_scale, second_scale)
    whole = max(first_whole, second_whole)
    return f"DECIMAL({whole + scale},{scale})" if whole + scale <= MAX_DECIMAL_DIGITS else "DOUBLE"


def told(kind: str) -> str:
    """A type in words for people."""
    if kind in _INTEGERS:
        return "a whole number"
    if _is_number(kind):
        return "a number"
    words = {"VARCHAR": "text", "DATE": "a date", "BOOLEAN": "true or false", "TIME": "a time of day", "BLOB": "bytes"}
    return words.get(kind) or ("a time" if kind.startswith("TIMESTAMP") else kind)


def _is_number(kind: str) -> bool:
    return kind in _INTEGERS or kind in _FLOATS or _DECIMAL.fullmatch(kind) is not None


def _digits(kind: str) -> tuple[int, int]:
    """(before the point, behind it)."""
    if found := _DECIMAL.fullmatch(kind):
        precision, scale = int(found[1]), int(found[2])
        return precision - scale, scale
    return _INTEGERS[kind], 0


def _listed(columns: Sequence[Column]) -> str:
    shown = ", ".join(column.name for column in columns[:5])
    return f"{shown}, …" if len(columns) > 5 else shown
