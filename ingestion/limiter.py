"""One brake per provider key, shared by every worker through Redis: who is told to slow down slows all of them."""

import hashlib

from redis.exceptions import RedisError

from config.redis import redis_client
from kb.providers import ModelSpec


def _key(spec: ModelSpec) -> str:
    account = f"{spec.provider}|{spec.endpoint}|{spec.credential}".encode()
    return f"lectern:pause:{hashlib.sha256(account).hexdigest()[:32]}"


def pause(spec: ModelSpec, seconds: float) -> None:
    """Nobody calls this provider with this key for so long."""
    try:
        redis_client().set(_key(spec), 1, px=max(1, int(seconds * 1000)))
    except RedisError:
        return  # the texts' own not_before holds them back


def is_paused(spec: ModelSpec) -> bool:
    try:
        return bool(redis_client().exists(_key(spec)))
    except RedisError:
        return False
