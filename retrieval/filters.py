"""Conditions on documents, as a request writes them and as the database asks them.

    {"type": "and", "filters": [{"type": "gte", "key": "year", "value": 2020}, {"type": "not", "filter": {"type": "eq", ...}}]}

A key is a field of the document (FIELDS) or one of its metadata; `metadata.title` names a metadata key that is called like a field.
Types count: 5 is not "5". A document without the key fulfils `ne`, `nin` and `exists: false` and nothing else.
"""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import BooleanField, CharField, DateTimeField, ExpressionWrapper, F, Func, JSONField, Q, UUIDField, Value
from django.db.models import Field as ModelField
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, IContains, LessThan, LessThanOrEqual
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field

from config.errors import InvalidInput

MAX_DEPTH = 8
MAX_CONDITIONS = 100
MAX_VALUES = 1000
MAX_TEXT = 8192

FIELDS: dict[str, tuple[str, ModelField]] = {
    "document_id": ("id", UUIDField()),
    "source_id": ("source_id", UUIDField()),
    "language": ("language", CharField()),
    "url": ("url", CharField()),
    "title": ("title", CharField()),
    "media_type": ("media_type", CharField()),
    "created_at": ("created_at", DateTimeField()),
    "ingested_at": ("last_ingested_at", DateTimeField()),
}
_ORDERED = {"gt": GreaterThan, "gte": GreaterThanOrEqual, "lt": LessThan, "lte": LessThanOrEqual}
_METADATA = "metadata."

Text = Annotated[str, Field(max_length=MAX_TEXT)]
Scalar = Annotated[bool | int | float | Text, Field(union_mode="left_to_right")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Comparison(_Part):
    """One condition. `in` and `nin` take a list, `exists` true or false, the others one value; `contains` means part of a text (capitals do
    not count) or one entry of a list."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "exists"]
    key: str = Field(min_length=1, max_length=200, description=f"A metadata key, or one of: {', '.join(FIELDS)}.")
    value: Scalar | Annotated[list[Scalar], Field(max_length=MAX_VALUES)] = Field(
        description="Text, number, boolean or a list of them. Dates are ISO 8601."
    )


class Group(_Part):
    """Conditions of which all (`and`) or one (`or`) must hold."""

    type: Literal["and", "or"]
    filters: list[Filter] = Field(min_length=1, max_length=MAX_CONDITIONS)


class Negation(_Part):
    type: Literal["not"]
    filter: Filter


Filter = Annotated[Comparison | Group | Negation, Field(discriminator="type")]
Group.model_rebuild()
Negation.model_rebuild()


def compile_filter(condition: Comparison | Group | Negation, *, path: str = "filters") -> Q:
    """The condition on rows of Document. `InvalidInput` names the place of what cannot be asked."""
    return _Compiler().compile(condition, path, 1)


class _Compiler:
    """Counts what it has seen: a filter is part of every statement of a search."""

    def __init__(self) -> None:
        self.seen = 0

    def compile(self, condition: Comparison | Group | Negation, path: str, depth: int) -> Q:
        if depth > MAX_DEPTH:
            raise _refused(path, f"is nested deeper than {MAX_DEPTH} levels. Flatten it.")
        self.seen += 1
        if self.seen > MAX_CONDITIONS:
            raise _refused(path, f"is one condition too many: at most {MAX_CONDITIONS} are taken.")
        if isinstance(condition, Negation):
            return ~self.compile(condition.filter, f"{path}.filter", depth + 1)
        if isinstance(condition, Comparison):
            return _leaf(condition, path)
        parts = [self.compile(part, f"{path}.filters[{i}]", depth + 1) for i, part in enumerate(condition.filters)]
        found = parts[0]
        for part in parts[1:]:
            found = found & part if condition.type == "and" else found | part
        return found


def _leaf(condition: Comparison, path: str) -> Q:
    kind, value = condition.type, condition.value
    if kind in ("in", "nin"):
        if not isinstance(value, list):
            raise _refused(f"{path}.value", f"must be a list for `{kind}`.")
    elif isinstance(value, list):
        raise _refused(f"{path}.value", f"must be one value for `{kind}`; a list is for `in` and `nin`.")
    if kind == "exists" and not isinstance(value, bool):
        raise _refused(f"{path}.value", "must be true or false for `exists`.")
    field = FIELDS.get(condition.key)
    positive = {"ne": "eq", "nin": "in"}.get(kind, kind)
    found = _on_metadata(condition, positive) if field is None else _on_field(*field, condition, positive, path)
    return ~found if kind in ("ne", "nin") or (kind == "exists" and value is False) else found


def _on_field(column: str, field: ModelField, condition: Comparison, kind: str, path: str) -> Q:
    if kind == "exists":
        return ~Q(**{column: ""}) if isinstance(field, CharField) else Q(**{f"{column}__isnull": False})
    is_time, is_text = isinstance(field, DateTimeField), isinstance(field, CharField)
    if (kind in _ORDERED and not is_time) or (kind == "contains" and not is_text):
        raise _refused(f"{path}.type", f"`{kind}` cannot be asked of {condition.key}.")
    given = condition.value if isinstance(condition.value, list) else [condition.value]
    values = [_typed(field, value, path, condition.key) for value in given]
    if kind == "in":
        return Q(**{f"{column}__in": values})
    lookup = {"eq": "exact", "contains": "icontains"}.get(kind, kind)
    # Null where a time is not set yet: a condition on it does not hold, and its negation does.
    return Q(**{f"{column}__{lookup}": values[0]}) & (Q(**{f"{column}__isnull": False}) if is_time else Q())


def _typed(field: ModelField, value: Any, path: str, key: str) -> Any:
    if not isinstance(value, str):
        raise _refused(f"{path}.value", f"must be text for {key}.")
    if isinstance(field, CharField):
        return value
    try:
        return UUID(value) if isinstance(field, UUIDField) else _moment(value)
    except ValueError:
        form = "an id (a UUID)" if isinstance(field, UUIDField) else "a date or time such as 2026-01-31 or 2026-01-31T12:00:00Z"
        raise _refused(f"{path}.value", f"must be {form} for {key}.") from None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.combine(date.fromisoformat(text), time.min)
    except ValueError:
        moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else timezone.make_aware(moment, timezone.get_default_timezone())


def _on_metadata(condition: Comparison, kind: str) -> Q:
    value: Any = condition.value
    name = condition.key.removeprefix(_METADATA) or condition.key
    stored = Func(F("metadata"), Value(name, CharField()), function="jsonb_extract_path", output_field=JSONField())
    type_of = Func(stored, function="jsonb_typeof", output_field=CharField())
    if kind == "exists":
        return _certain(Exact(type_of, Value("null", CharField())), default=True, negated=True)
    if kind == "eq":
        return _certain(Exact(stored, _json(value)))
    if kind == "in":
        found = Q(pk__in=[])
        for one in value:
            found |= _certain(Exact(stored, _json(one)))
        return found
    if kind == "contains":
        holds = Func(stored, _json([value]), template="(%(expressions)s)", arg_joiner=" @> ", output_field=BooleanField())
        found = _certain(Exact(type_of, Value("array", CharField()))) & _certain(holds)
        if isinstance(value, str):
            text = Func(F("metadata"), Value(name, CharField()), function="jsonb_extract_path_text", output_field=CharField())
            found |= _certain(Exact(type_of, Value("string", CharField()))) & _certain(IContains(text, value))
        return found
    # Numbers are compared with numbers and text with text: in JSON's own order every text stands below every number.
    kind_of_value = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
    return _certain(Exact(type_of, Value(kind_of_value, CharField()))) & _certain(_ORDERED[kind](stored, _json(value)))


def _json(value: Any) -> Value:
    return Value(value, JSONField())


def _certain(condition: Any, *, default: bool = False, negated: bool = False) -> Q:
    """Never null, so that a negation means what it says."""
    found = Q(Coalesce(ExpressionWrapper(condition, BooleanField()), Value(default)))
    return ~found if negated else found


def _refused(path: str, message: str) -> InvalidInput:
    return InvalidInput(f"The request is not valid at {path}: {message}", errors=[{"path": path, "message": message}])
