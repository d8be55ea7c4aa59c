"""COPY on the caller's own connection, inside its transaction."""

from collections.abc import Iterable, Sequence

from django.db import connection
from psycopg import sql

from kb.stores import wire


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[bytes]) -> None:
    """Write rows in binary form. Triggers fire as for an INSERT; a duplicate key raises IntegrityError like one."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        copy.write(wire.HEADER)
        for row in rows:
            copy.write(row)
        copy.write(wire.TRAILER)
