"""Django's Postgres, with the organizations that are served in front of each statement that needs them said (`config.tenancy`).

They are said in the same message as the statement, so that they cost no round trip, and for one transaction, so that PgBouncer can give
the connection to somebody else afterwards. Within a transaction they are said once, and again when they change: whoever serves another
organization meanwhile needs to restore nothing.
"""

import re
from typing import Any

from django.db.backends.postgresql import base
from psycopg import sql
from psycopg.pq import TransactionStatus

from config.tenancy import NOBODY, served

_SAY = "SET LOCAL lectern.organization = %s; "
# What reads or writes rows. In autocommit nothing else is sent together with a second statement: VACUUM and CREATE INDEX CONCURRENTLY
# refuse to be.
_ROWS = re.compile(r"[\s(]*(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|EXPLAIN|VALUES|TABLE|CALL|DO)\b", re.IGNORECASE)


class Cursor(base.Cursor):
    """`said`, on the connection, is what its open transaction was told; None when that is unknown."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> "Cursor":
        text = self._unsaid()
        if text is None or not (self._in_transaction() or _ROWS.match(_string(query, self))):
            return super().execute(query, params, **options)
        if isinstance(query, str) and isinstance(params, (list, tuple)):  # one text for all tenants: psycopg parses it once
            super().execute(_SAY + query, [text, *params], **options)
        else:
            super().execute(_literal(text) + _string(query, self), params, **options)
        self.connection.said = text
        self.nextset()
        return self

    def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        self._say()
        super().executemany(query, params_seq, **options)

    def copy(self, statement: Any, params: Any = None, **options: Any) -> Any:
        self._say()
        return super().copy(statement, params, **options)

    def stream(self, query: Any, params: Any = None, **options: Any) -> Any:
        self._say()
        return super().stream(query, params, **options)

    def _say(self) -> None:
        """In a message of its own, for what takes no second statement. In autocommit that would be forgotten at once: nobody is served."""
        text = self._unsaid()
        if text is not None and self._in_transaction():
            super().execute(_literal(text))
            self.connection.said = text

    def _unsaid(self) -> str | None:
        """What has to be said before the next statement; None for nothing."""
        status, text = self.connection.pgconn.transaction_status, served()
        if status == TransactionStatus.IDLE:
            self.connection.said = NOBODY
        elif status == TransactionStatus.INERROR:
            self.connection.said = None  # only a rollback is taken now, and it takes back what was said
            return None
        return None if self.connection.said == text else text

    def _in_transaction(self) -> bool:
        return not self.connection.autocommit or self.connection.pgconn.transaction_status != TransactionStatus.IDLE


def _literal(text: str) -> str:
    return _SAY.replace("%s", f"'{text}'")


def _string(query: Any, cursor: Cursor) -> str:
    if isinstance(query, bytes):
        return query.decode()
    return query.as_string(cursor) if isinstance(query, sql.Composable) else query


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "cursor_factory": Cursor}

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)
        self.connection.said = None  # what was said since the savepoint is taken back with it
