"""Many updates in one statement."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Model

_ROWS_A_STATEMENT = 500
_LENGTH = re.compile(r"\(\d+\)")


def update_rows(model: type[Model], changes: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
    """Update rows by primary key, each with values of its own for the same fields; rows that others may update too are locked before.

    One statement: parsing and planning one for each row costs more than the update. Django's `bulk_update` writes a CASE for each field,
    which grows with the square of rows and fields.
    """
    for start in range(0, len(changes), _ROWS_A_STATEMENT):
        _update(model, changes[start : start + _ROWS_A_STATEMENT])


def _update(model: type[Model], changes: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
    key = model._meta.pk
    fields = [model._meta.get_field(name) for name in changes[0][1]]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in (key, *fields))
    # Nulls and texts come without a type. Not with its length either: a cast to one would cut what assigning refuses.
    types = [_LENGTH.sub("", field.db_type(connection)) for field in fields]
    assignments = ", ".join(f"{quote(f.column)} = new.{quote(f.column)}::{kind}" for f, kind in zip(fields, types, strict=True))
    row = f"({', '.join(['%s'] * (1 + len(fields)))})"
    statement = (
        f"UPDATE {quote(model._meta.db_table)} old SET {assignments} FROM (VALUES {', '.join([row] * len(changes))}) AS new ({columns})"  # noqa: S608
        f" WHERE old.{quote(key.column)} = new.{quote(key.column)}"
    )
    parameters: list[Any] = []
    for identifier, values in changes:
        parameters.append(identifier)
        parameters += [field.get_db_prep_save(_plain(values[field.name]), connection) for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def _plain(value: Any) -> Any:
    """A related row counts as its key."""
    return value.pk if isinstance(value, Model) else value
