"""Metadata of documents in conditions: compared as declared, or as it is stored.

Undeclared, types count (5 is not "5"), but for two things: text that is written like a date is compared as a point in time with text
that is, too, and a list holds its entries. Declared, what a document holds is read as the type says; what cannot be is as good as absent.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db.models import BooleanField, CharField, DateTimeField, DecimalField, ExpressionWrapper, F, Func, JSONField, Q, Value
from django.db.models.functions import Coalesce, Lower
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, IContains, In, LessThan, LessThanOrEqual
from django.utils import timezone

_ORDERED = {"gt": GreaterThan, "gte": GreaterThanOrEqual, "lt": LessThan, "lte": LessThanOrEqual}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?", re.DOTALL)
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
TAGS = "tags"


class Refused(ValueError):
    """What cannot be asked: a sentence without its end, and the `part` of the condition that it is about."""

    def __init__(self, message: str, part: str = "value") -> None:
        super().__init__(message)
        self.part = part


@dataclass(frozen=True, slots=True)
class MetadataTypes:
    """Types by key. `is_closed`: another key is a slip, because every knowledge base that is searched says what it has."""

    by_key: Mapping[str, str] = field(default_factory=dict)
    is_closed: bool = False

    def knows(self, key: str) -> bool:
        return not self.is_closed or key in self.by_key


NO_TYPES = MetadataTypes({TAGS: "list"})


def merge_types(declared: Iterable[Mapping[str, str]]) -> MetadataTypes:
    """Of several knowledge bases. A key that two declare differently is compared as it is stored; `tags` is a list by itself."""
    schemas = list(declared)
    found: dict[str, set[str]] = {TAGS: set()}
    for schema in schemas:
        for key, kind in schema.items():
            found.setdefault(key, set()).add(kind)
    found[TAGS] = found[TAGS] or {"list"}
    return MetadataTypes({key: kinds.pop() if len(kinds) == 1 else "" for key, kinds in found.items()}, bool(schemas) and all(schemas))


def compare(key: str, kind: str, value: Any, declared: str | None) -> Q:
    """The condition on `metadata` of a document. `kind` is eq, in, contains, exists or an order, `declared` a type or none."""
    stored = _Stored(key)
    if kind == "exists":
        return _certain(Exact(stored.type, Value("null", CharField())), default=True, negated=True)
    asked = {"number": _number, "date": _date, "boolean": _boolean, "list": _list, "text": _text}.get(declared or "", _as_stored)
    if kind != "in":
        return asked(stored, kind, value)
    found = Q(pk__in=[])
    for one in value:
        found |= asked(stored, "eq", one)
    return found


class _Stored:
    """What a document holds under a key: as JSON, as text, and of which type."""

    def __init__(self, key: str) -> None:
        name = Value(key, CharField())
        self.json = Func(F("metadata"), name, function="jsonb_extract_path", output_field=JSONField())
        self.text = Func(F("metadata"), name, function="jsonb_extract_path_text", output_field=CharField())
        self.type = Func(self.json, function="jsonb_typeof", output_field=CharField())

    def is_a(self, kind: str) -> Q:
        return _certain(Exact(self.type, Value(kind, CharField())))

    def holds(self, value: Any) -> Q:
        holds = Func(self.json, _json([value]), template="(%(expressions)s)", arg_joiner=" @> ", output_field=BooleanField())
        return self.is_a("array") & _certain(holds)


def _number(stored: _Stored, kind: str, value: Any) -> Q:
    _only(kind, "eq", *_ORDERED, declared="number")
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        number = None
    if isinstance(value, bool) or number is None or not number.is_finite():
        raise Refused("must be a number")
    held = Func(stored.text, function="metadata_number", output_field=DecimalField())
    return _certain(_ORDERED.get(kind, Exact)(held, Value(number, DecimalField())))


def _date(stored: _Stored, kind: str, value: Any) -> Q:
    _only(kind, "eq", *_ORDERED, declared="date")
    return moment_condition(_moment_of(stored), kind, value)


def _boolean(stored: _Stored, kind: str, value: Any) -> Q:
    _only(kind, "eq", declared="boolean")
    written = str(value).strip().lower()
    if written not in (*_TRUE, *_FALSE):
        raise Refused("must be true or false")
    return _certain(In(Lower(stored.text), _TRUE if written in _TRUE else _FALSE))


def _list(stored: _Stored, kind: str, value: Any) -> Q:
    """A single value where a list was declared is a list of one."""
    _only(kind, "eq", "contains", declared="list")
    return stored.holds(value) | _certain(Exact(stored.json, _json(value)))


def _text(stored: _Stored, kind: str, value: Any) -> Q:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if kind == "contains":
        return _certain(IContains(stored.text, text)) | stored.holds(value)
    return _certain(_ORDERED.get(kind, Exact)(stored.text, Value(text, CharField())))


def _as_stored(stored: _Stored, kind: str, value: Any) -> Q:
    if kind == "contains":
        found = stored.holds(value)
        return found | (stored.is_a("string") & _certain(IContains(stored.text, value))) if isinstance(value, str) else found
    is_date = isinstance(value, str) and _moment(value) is not None
    if kind == "eq":
        found = _certain(Exact(stored.json, _json(value))) | stored.holds(value)
        return found | (stored.is_a("string") & moment_condition(_moment_of(stored), kind, value)) if is_date else found
    if is_date:
        return stored.is_a("string") & moment_condition(_moment_of(stored), kind, value)
    # Numbers are compared with numbers and text with text: in JSON's own order every text stands below every number.
    kind_of_value = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
    return stored.is_a(kind_of_value) & _certain(_ORDERED[kind](stored.json, _json(value)))


def moment_condition(held: Any, kind: str, value: Any) -> Q:
    """A point in time against another, or against a whole day: `lte` a day includes it, `gt` begins after it, `eq` lies in it."""
    moment = _moment(value) if isinstance(value, str) else None
    if moment is None:
        raise Refused("must be a date or time such as 2026-01-31 or 2026-01-31T12:00:00Z")
    if kind not in ("eq", *_ORDERED):
        raise Refused(f"`{kind}` cannot be asked", "type")
    try:
        end = moment + timedelta(days=1) if len(value.strip()) <= len("2026-01-31") else moment
    except OverflowError:
        end = moment

    def holds(lookup: type, point: datetime) -> Q:
        return _certain(lookup(held, Value(point, DateTimeField())))

    if kind == "eq":
        return holds(Exact, moment) if end == moment else holds(GreaterThanOrEqual, moment) & holds(LessThan, end)
    if end != moment and kind in ("gt", "lte"):
        return holds(GreaterThanOrEqual if kind == "gt" else LessThan, end)
    return holds(_ORDERED[kind], moment)


def _moment(text: str) -> datetime | None:
    text = text.strip()
    if not _DATE.fullmatch(text):
        return None
    try:
        moment = datetime.combine(date.fromisoformat(text), time.min) if len(text) == len("2026-01-31") else datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else timezone.make_aware(moment, timezone.get_default_timezone())


def _moment_of(stored: _Stored) -> Func:
    return Func(stored.text, function="metadata_moment", output_field=DateTimeField())


def _only(kind: str, *kinds: str, declared: str) -> None:
    if kind not in kinds:
        raise Refused(f"`{kind}` cannot be asked of a {declared},", "type")


def _json(value: Any) -> Value:
    return Value(value, JSONField())


def _certain(condition: Any, *, default: bool = False, negated: bool = False) -> Q:
    """Never null, so that a negation means what it says."""
    found = Q(Coalesce(ExpressionWrapper(condition, BooleanField()), Value(default)))
    return ~found if negated else found
