"""One brake per account of a service, shared by all processes through Redis: who is told to slow down slows all of them."""

import hashlib

from redis.exceptions import RedisError

from config.redis import redis_client


def pause(account: str, seconds: float) -> None:
    """Nobody calls this account for so long. Without Redis, whoever was refused holds back alone."""
    try:
        redis_client().set(_key(account), 1, px=max(1, int(seconds * 1000)))
    except RedisError:
        return


def is_paused(account: str) -> bool:
    try:
        return bool(redis_client().exists(_key(account)))
    except RedisError:
        return False


def _key(account: str) -> str:
    """The account names a key, so only its hash goes anywhere."""
    return f"lectern:pause:{hashlib.sha256(account.encode()).hexdigest()[:32]}"
