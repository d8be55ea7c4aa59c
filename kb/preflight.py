"""What the database must have before the first table is made; otherwise a sentence for its administrator."""

from django.core.management.base import CommandError
from django.db import DatabaseError, transaction

EXTENSIONS = ("vector", "btree_gin", "pg_trgm", "unaccent")
LEAST_VECTOR = (0, 8)


def check_database(connection) -> None:
    """Create the extensions where this role may, and refuse with the command to run where it may not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extname, extversion FROM pg_extension")
        present = dict(cursor.fetchall())
        for name in EXTENSIONS:
            if name in present:
                continue
            try:
                with transaction.atomic(using=connection.alias):
                    cursor.execute(f"CREATE EXTENSION IF NOT EXISTS {name}")
            except DatabaseError as error:
                raise CommandError(
                    f"The database lacks the extension {name} and this role may not create it ({str(error).strip().splitlines()[0]}). "
                    f"An administrator runs, in this database: CREATE EXTENSION {name};"
                ) from error
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        version = cursor.fetchone()[0]
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_VECTOR:
        raise CommandError(
            f"The database has pgvector {version}; Lectern needs 0.8 or newer. "
            "An administrator installs it and runs, in this database: ALTER EXTENSION vector UPDATE;"
        )


def before_migrating(apps, schema_editor) -> None:
    check_database(schema_editor.connection)
