"""Many updates in one round trip."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import Model


def update_rows(model: type[Model], changes: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
    """Update rows by primary key, each with values of its own for the same fields, sent in one pipeline.

    Django's `bulk_update` writes one statement with a CASE for each field, which grows with the square of rows and fields.
    """
    if not changes:
        return
    fields = [model._meta.get_field(name) for name in changes[0][1]]
    quote = connection.ops.quote_name
    assignments = ", ".join(
        f"{quote(field.column)} = %s::{field.db_type(connection)}" if isinstance(field, ArrayField) else f"{quote(field.column)} = %s"
        for field in fields
    )
    statement = f"UPDATE {quote(model._meta.db_table)} SET {assignments} WHERE {quote(model._meta.pk.column)} = %s"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.executemany(
            statement,
            [[*(field.get_db_prep_save(_plain(values[field.name]), connection) for field in fields), key] for key, values in changes],
        )


def _plain(value: Any) -> Any:
    """A related row counts as its key."""
    return value.pk if isinstance(value, Model) else value
