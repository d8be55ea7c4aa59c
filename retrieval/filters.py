"""Conditions on documents, as a request writes them and as the database asks them.

    {"type": "and", "filters": [{"type": "gte", "key": "year", "value": 2020}, {"type": "not", "filter": {"type": "eq", ...}}]}

A key is a field of the document (FIELDS) or one of its metadata; `metadata.title` names a metadata key that is called like a field.
Metadata is compared as its knowledge base declares it, else as it is stored (`retrieval.metadata`). A document without the key fulfils
`ne`, `nin` and `exists: false` and nothing else.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import CharField, DateTimeField, F, Q, UUIDField
from django.db.models import Field as ModelField
from pydantic import BaseModel, ConfigDict, Field

from config.errors import InvalidInput
from retrieval.metadata import NO_TYPES, MetadataTypes, Refused, compare, moment_condition

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
_ORDERED = ("gt", "gte", "lt", "lte")
_METADATA = "metadata."

Text = Annotated[str, Field(max_length=MAX_TEXT)]
Scalar = Annotated[bool | int | float | Text, Field(union_mode="left_to_right")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Comparison(_Part):
    """One condition. `in` and `nin` take a list, `exists` true or false, the others one value; `contains` means part of a text (capitals do
    not count) or one entry of a list. Where a document holds a list (`tags`), `eq` and `in` mean that it holds (one of) the values."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "exists"]
    key: str = Field(min_length=1, max_length=200, description=f"A metadata key, or one of: {', '.join(FIELDS)}.")
    value: Scalar | Annotated[list[Scalar], Field(max_length=MAX_VALUES)] = Field(
        description="Text, number, boolean or a list of them. Dates are ISO 8601; a date without a time is the whole day."
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


def compile_filter(condition: Comparison | Group | Negation, *, types: MetadataTypes = NO_TYPES, path: str = "filters") -> Q:
    """The condition on rows of Document. `InvalidInput` names the place of what cannot be asked, and the keys that can."""
    return _Compiler(types).compile(condition, path, 1)


class _Compiler:
    """Counts what it has seen: a filter is part of every statement of a search."""

    def __init__(self, types: MetadataTypes) -> None:
        self.types = types
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
            return _leaf(condition, self.types, path)
        parts = [self.compile(part, f"{path}.filters[{i}]", depth + 1) for i, part in enumerate(condition.filters)]
        found = parts[0]
        for part in parts[1:]:
            found = found & part if condition.type == "and" else found | part
        return found


def _leaf(condition: Comparison, types: MetadataTypes, path: str) -> Q:
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
    found = _on_metadata(condition, types, positive, path) if field is None else _on_field(*field, condition, positive, path)
    return ~found if kind in ("ne", "nin") or (kind == "exists" and value is False) else found


def _on_metadata(condition: Comparison, types: MetadataTypes, kind: str, path: str) -> Q:
    name = condition.key.removeprefix(_METADATA) or condition.key
    if not types.knows(name):
        known = ", ".join(sorted([*FIELDS, *types.by_key]))
        raise _refused(f"{path}.key", f"'{name[:100]}' is no key of these knowledge bases. Known: {known}.")
    try:
        return compare(name, kind, condition.value, types.by_key.get(name))
    except Refused as refused:
        raise _refused(f"{path}.{refused.part}", f"{refused} for {condition.key}.") from None


def _on_field(column: str, field: ModelField, condition: Comparison, kind: str, path: str) -> Q:
    if kind == "exists":
        return ~Q(**{column: ""}) if isinstance(field, CharField) else Q(**{f"{column}__isnull": False})
    is_time, is_text = isinstance(field, DateTimeField), isinstance(field, CharField)
    if (kind in _ORDERED and not is_time) or (kind == "contains" and not is_text):
        raise _refused(f"{path}.type", f"`{kind}` cannot be asked of {condition.key}.")
    given = condition.value if isinstance(condition.value, list) else [condition.value]
    if is_time:
        # Null where a time is not set yet: a condition on it does not hold, and its negation does.
        return Q(**{f"{column}__isnull": False}) & _at_times(column, kind, given, path, condition.key)
    values = [_typed(field, value, path, condition.key) for value in given]
    if kind == "in":
        return Q(**{f"{column}__in": values})
    return Q(**{f"{column}__{'icontains' if kind == 'contains' else 'exact'}": values[0]})


def _at_times(column: str, kind: str, given: list[Any], path: str, key: str) -> Q:
    found = Q(pk__in=[])
    for value in given:
        try:
            found |= moment_condition(F(column), "eq" if kind == "in" else kind, value)
        except Refused as refused:
            raise _refused(f"{path}.{refused.part}", f"{refused} for {key}.") from None
    return found


def _typed(field: ModelField, value: Any, path: str, key: str) -> Any:
    if not isinstance(value, str):
        raise _refused(f"{path}.value", f"must be text for {key}.")
    if isinstance(field, CharField):
        return value
    try:
        return UUID(value)
    except ValueError:
        raise _refused(f"{path}.value", f"must be an id (a UUID) for {key}.") from None


def _refused(path: str, message: str) -> InvalidInput:
    return InvalidInput(f"The request is not valid at {path}: {message}", errors=[{"path": path, "message": message}])
