"""Cursor paging (`?cursor&limit`), by the sort key of the last row and not by an offset: rows that come or go shift nothing."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Q, QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from config.body import parse_json
from config.errors import InvalidInput

DEFAULT_LIMIT = 20
MAX_LIMIT = 200
NEWEST_FIRST = ("-created_at", "-id")


@dataclass(frozen=True, slots=True)
class Page:
    """`next_cursor` is None on the last page."""

    items: list[Any]
    next_cursor: str | None


def take_page(
    queryset: QuerySet[Any],
    *,
    cursor: str | None,
    limit: int = DEFAULT_LIMIT,
    ordering: Sequence[str] = NEWEST_FIRST,
) -> Page:
    """The rows after `cursor`. `ordering` names fields that are never null and together unique, each with "-" for descending."""
    rows = queryset.order_by(*ordering)
    if cursor:
        rows = rows.filter(_after(queryset, ordering, _decode(cursor, ordering)))
    items = list(rows[: limit + 1])
    following = _encode(items[limit - 1], ordering) if len(items) > limit else None
    return Page(items[:limit], following)


def limit_of(request: Request, default: int = DEFAULT_LIMIT) -> int:
    """`?limit` between 1 and 200; anything else is InvalidInput."""
    text = request.query_params.get("limit", "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= MAX_LIMIT):
        message = f"`limit` must be a whole number from 1 to {MAX_LIMIT}."
        raise InvalidInput(message, errors=[{"path": "limit", "message": message}])
    return int(text)


class CursorPages(BasePagination):
    """For generic views; a subclass sets `ordering` and `default_limit`. Answers {items, next_cursor}."""

    ordering: Sequence[str] = NEWEST_FIRST
    default_limit = DEFAULT_LIMIT
    _page: Page

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request, view: Any = None) -> list[Any]:
        ordering = getattr(view, "ordering", None) or self.ordering
        limit = limit_of(request, self.default_limit)
        self._page = take_page(queryset, cursor=request.query_params.get("cursor"), limit=limit, ordering=ordering)
        return self._page.items

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"items": data, "next_cursor": self._page.next_cursor})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        cursor = {"type": ["string", "null"], "description": "the `cursor` of the next page; null on the last one"}
        return {"type": "object", "required": ["items", "next_cursor"], "properties": {"items": schema, "next_cursor": cursor}}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": self.default_limit}
        return [
            {"name": "cursor", "in": "query", "schema": {"type": "string"}, "description": "`next_cursor` of the page before"},
            {"name": "limit", "in": "query", "schema": limit, "description": "most items of one page"},
        ]


def _after(queryset: QuerySet[Any], ordering: Sequence[str], values: Sequence[Any]) -> Q:
    """Equal in the first fields and beyond in the next one, for each place where they can part."""
    condition, equal = Q(), Q()
    for name, value in zip(ordering, values, strict=True):
        field = name.lstrip("-")
        typed = _typed(queryset, field, value)
        condition |= equal & Q(**{f"{field}__{'lt' if name.startswith('-') else 'gt'}": typed})
        equal &= Q(**{field: typed})
    return condition


def _typed(queryset: QuerySet[Any], field: str, value: Any) -> Any:
    try:
        typed = queryset.model._meta.get_field(field).to_python(value)
    except FieldDoesNotExist:
        return value
    except (ValidationError, TypeError, ValueError, OverflowError):
        raise _bad() from None
    if isinstance(typed, datetime) and typed.tzinfo is None:
        raise _bad()
    return typed


def _encode(row: Any, ordering: Sequence[str]) -> str:
    values = [_plain(getattr(row, name.lstrip("-"))) for name in ordering]
    text = json.dumps([",".join(ordering), *values], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _plain(value: Any) -> str | int | float:
    if isinstance(value, (int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _decode(cursor: str, ordering: Sequence[str]) -> list[Any]:
    """Not signed: it says where to go on reading, and what may be read is decided by the queryset."""
    try:
        data = parse_json(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, InvalidInput):
        raise _bad() from None
    if not isinstance(data, list) or len(data) != len(ordering) + 1 or data[0] != ",".join(ordering):
        raise _bad()
    if any(not isinstance(value, (str, int, float)) or isinstance(value, bool) for value in data[1:]):
        raise _bad()
    return data[1:]


def _bad() -> InvalidInput:
    message = "`cursor` is not one that this list gave. Start again without it."
    return InvalidInput(message, errors=[{"path": "cursor", "message": message}])
