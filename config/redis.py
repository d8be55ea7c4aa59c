"""One Redis client a process, with time limits of its own: a lock or a counter must never hang a request."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import redis
from django.conf import settings
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from config.errors import Unavailable

_clients: dict[tuple[int, str], redis.Redis] = {}
_lock = Lock()


def redis_client() -> redis.Redis:
    """Answers are bytes. A forked child gets a client of its own: a shared socket would mix two conversations."""
    key = (os.getpid(), settings.REDIS_URL)
    client = _clients.get(key)
    if client is None:
        with _lock:
            client = _clients.setdefault(key, open_redis(settings.REDIS_URL))
    return client


def open_redis(url: str, *, socket_timeout: float | None = 3.0) -> redis.Redis:
    """`socket_timeout=None` for blocking reads and subscriptions, which may wait longer than any answer takes."""
    return redis.Redis.from_url(
        url,
        socket_timeout=socket_timeout,
        socket_connect_timeout=1.0,
        socket_keepalive=True,
        health_check_interval=15,
        # One more try covers a connection that went stale in the pool.
        retry=Retry(ExponentialBackoff(cap=0.2, base=0.05), 1),
        decode_responses=False,
    )


@contextmanager
def redis_errors() -> Iterator[None]:
    """Inside, a Redis that does not answer is Unavailable, for callers that cannot do without it."""
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise Unavailable("Redis does not answer. Check that it is up and that REDIS_URL is right; then try again.") from error


if hasattr(os, "register_at_fork"):
    # The lock may be held by another thread at the moment of the fork, and nobody would release it in the child.
    def _renew() -> None:
        global _lock
        _lock = Lock()
        _clients.clear()

    os.register_at_fork(after_in_child=_renew)
