"""Connections of the web process: a database that does not answer ends a request, it does not keep it.

The limit is kept on this side of the wire, because a server that hangs keeps none, and because PgBouncer in transaction mode takes
no settings of a session. It holds for each statement by itself, so that a long answer of many statements is not cut.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from psycopg import Connection, Error, OperationalError

CANCEL_SECONDS = 1.0
_seconds: ContextVar[float | None] = ContextVar("seconds that a statement may take", default=None)


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """Inside, a statement of this thread may take so long: less for a look at the database's health, more for known heavy work."""
    token = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(token)


def impatient(limit: float) -> type[Connection]:
    """A class of connections on which a statement takes at most `limit` seconds; one that takes longer is cancelled and costs the
    connection, because nobody knows when its answer would come."""

    class Impatient(Connection):
        def wait(self, gen: Any, *arguments: Any, timeout: float | None = None, **options: Any) -> Any:
            if timeout is not None:
                return super().wait(gen, *arguments, timeout=timeout, **options)
            seconds = _seconds.get() or limit
            try:
                return super().wait(gen, *arguments, timeout=seconds, **options)
            except OperationalError as error:
                if type(error).__name__ != "_WaitTimeout":
                    raise
                with suppress(Error):
                    self.cancel_safe(timeout=CANCEL_SECONDS)
                self.pgconn.finish()
                raise OperationalError(f"the database gave no answer within {seconds:g} seconds") from None

    return Impatient
