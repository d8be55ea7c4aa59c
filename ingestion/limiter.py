"""What is known of a provider's key, shared by every worker through Redis: who is told to slow down slows all of them, and a size of
batches that was refused is tried by none of them again."""

import hashlib
import json

from redis.exceptions import RedisError

from config.redis import redis_client
from kb.providers import BatchLimits, ModelSpec

LEARNT_SECONDS = 24 * 3600  # then the larger size is tried again: accounts grow


def _account(spec: ModelSpec) -> str:
    return hashlib.sha256(f"{spec.provider}|{spec.endpoint}|{spec.credential}".encode()).hexdigest()[:32]


def _pause_key(spec: ModelSpec) -> str:
    return f"lectern:pause:{_account(spec)}"


def _sizes_key(spec: ModelSpec) -> str:
    return f"lectern:batch:{_account(spec)}:{spec.model}"


def pause(spec: ModelSpec, seconds: float) -> None:
    """Nobody calls this provider with this key for so long."""
    try:
        redis_client().set(_pause_key(spec), 1, px=max(1, int(seconds * 1000)))
    except RedisError:
        return  # the texts' own not_before holds them back


def is_paused(spec: ModelSpec) -> bool:
    try:
        return bool(redis_client().exists(_pause_key(spec)))
    except RedisError:
        return False


def learn(spec: ModelSpec, limits: BatchLimits) -> None:
    """Larger batches than these were refused, and these were not."""
    try:
        redis_client().set(_sizes_key(spec), json.dumps([limits.max_texts, limits.max_tokens]), ex=LEARNT_SECONDS)
    except RedisError:
        return  # it is learnt again


def limits_of(spec: ModelSpec, limits: BatchLimits) -> BatchLimits:
    """The sizes that a provider takes: its own, or smaller ones that were learnt."""
    try:
        known = redis_client().get(_sizes_key(spec))
    except RedisError:
        known = None
    if known is None:
        return limits
    texts, tokens = json.loads(known)
    return BatchLimits(max_texts=min(texts, limits.max_texts), max_tokens=min(tokens, limits.max_tokens))
