"""Statements that forgot every condition: what they see is what Postgres shows."""

from django.db import connection

TABLES = ("kb_organization", "kb_source", "ingestion_ingestionrun")


def seen() -> dict[str, list[str]]:
    """The organizations whose rows raw SQL sees in some tables."""
    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            column = "id" if table == "kb_organization" else "organization_id"
            cursor.execute(f"SELECT DISTINCT {column} FROM {table}")
            found[table] = sorted(str(row[0]) for row in cursor.fetchall())
    return found
