"""A service that is away for a while: how it is told from a fault of ours, and how a write waits for the database."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from redis.exceptions import RedisError

from config.errors import LecternError

log = logging.getLogger(__name__)
T = TypeVar("T")

RETRY_SECONDS = 1.0
# SQLSTATE of a database that went or could not take us: shutdown and start, lost connections, no room for another one, a full
# disk, a transaction that was ended because its worker stood still. A connection that broke has none.
_AWAY = ("08", "57P", "53100", "53300", "25P03")


def is_database_away(error: BaseException) -> bool:
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return not state or state.startswith(_AWAY)


def is_passing(error: BaseException) -> bool:
    """Whether a service failed for now, so that neither the code nor the item at hand is at fault."""
    if isinstance(error, LecternError):
        return error.transient
    return isinstance(error, RedisError) or is_database_away(error)


def insist(write: Callable[[], T]) -> T:
    """Do what must not be lost, and while the database is away, again: for as long as a lease lasts. `write` may be done twice."""
    until = time.monotonic() + settings.ENV.lease_seconds
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            if not is_database_away(error) or connection.in_atomic_block or time.monotonic() > until:
                raise
            log.warning("The database is away (%s); what has to be written waits for it.", str(error).strip().partition("\n")[0])
            connection.close()
            time.sleep(RETRY_SECONDS)
