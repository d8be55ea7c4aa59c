"""Servers that a variable names instead of embedded ones: they answer, or nothing is started."""

import os
import time
from collections.abc import Callable

from config.embedded.failures import ServiceError
from config.env import environment, variable_names

TRIES = 5
PAUSE_SECONDS = 1.0


def check_given(*, tries: int = TRIES) -> None:
    """Ask the databases and the broker that variables name; ServiceError is a sentence with the variable and never its value."""
    asked: set[str] = set()
    for field, ask in (("database_url", _ask_postgres), ("database_owner_url", _ask_postgres), ("redis_url", _ask_redis)):
        url = getattr(environment(), field)
        if url and url not in asked:
            asked.add(url)
            _insist(field, url, ask, tries=tries)


def _insist(field: str, url: str, ask: Callable[[str], str], *, tries: int) -> None:
    """A server that is being started beside us gets some seconds; one that swallows packets is not waited for five times over."""
    deadline = time.monotonic() + tries * PAUSE_SECONDS
    for left in reversed(range(tries)):
        reason = ask(url)
        if not reason:
            return
        if not left or time.monotonic() > deadline:
            break
        time.sleep(PAUSE_SECONDS)
    names = variable_names(field)
    name = next((name for name in names if os.environ.get(name) or os.environ.get(f"{name}_FILE")), names[0])
    kind = "Redis or Valkey" if field == "redis_url" else "Postgres"
    raise ServiceError(
        f"{name} is set, but the {kind} it names cannot be used ({reason}): start that server, correct {name}, "
        "or unset it and an embedded one is started."
    )


def _ask_postgres(url: str) -> str:
    """Why it cannot be used; empty when it can."""
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        return _reason(str(error).removeprefix("connection failed: "))
    except (psycopg.Error, ValueError):
        return "the URL cannot be read"
    return ""


def _ask_redis(url: str) -> str:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    try:
        with redis.Redis.from_url(url, socket_timeout=2.0, socket_connect_timeout=2.0, retry=Retry(NoBackoff(), 0)) as client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        return _reason(str(error))
    except ValueError:
        return "the URL cannot be read"  # the error may repeat a part of it
    return ""


def _reason(words: str) -> str:
    lines = words.strip().splitlines()
    return lines[0].rstrip(".: ")[:200] if lines else "no answer"
