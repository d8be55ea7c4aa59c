"""Policies of row-level security, for migrations: `protect` on every table that has an organization."""

from django.db.migrations import RunSQL

# Of the transaction's `lectern.organization`, once a statement and not once a row: NULL for everyone, no elements for nobody.
_SERVED = "(SELECT nullif(coalesce(nullif(current_setting('lectern.organization', true), ''), '{}'), '*')::uuid[])::uuid[]"
_ANYBODY = "(SELECT current_setting('lectern.organization', true) <> '')"
_NO_ORGANIZATION = "'00000000-0000-0000-0000-000000000000'::uuid"


def protect(table: str, *, column: str = "organization_id", shared: bool = False) -> RunSQL:
    """Show and take only rows of the organizations that are served, the table's owner included. In a `shared` table rows without an
    organization are the installation's: read by all whom anybody serves, written where everyone is served.

    A condition that is not LEAKPROOF (LIKE, arrays, JSON, vectors) can use no index of such a table: derived tables go without."""
    owner = f"coalesce({column}, {_NO_ORGANIZATION})" if shared else column
    own = f"coalesce({owner} = ANY ({_SERVED}), true)"
    statements = [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {table} USING ({own}) WITH CHECK ({own})",
    ]
    if shared:
        statements.append(f"CREATE POLICY installation ON {table} FOR SELECT USING ({column} IS NULL AND {_ANYBODY})")
    undo = [f"DROP POLICY {name} ON {table}" for name in ("tenant", "installation")[: 1 + shared]]
    undo += [f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY", f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"]
    return RunSQL("; ".join(statements), "; ".join(undo))
