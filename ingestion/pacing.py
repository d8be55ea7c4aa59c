"""Whose turn it is at a host: one clock per origin in Redis, shared by every worker and every run.

What this process reserved itself it also remembers: a Redis that is away or was emptied never makes it faster than polite."""

import math
import time
from dataclasses import dataclass
from threading import Lock

from redis.exceptions import RedisError

from config.redis import redis_client

# After Redis did not answer it is left alone for so long: asking it may take seconds a request.
_REDIS_AWAY_SECONDS = 5.0
_PAUSE_KNOWN_SECONDS = 1.0
_MOST_REMEMBERED = 10_000

# Hash of milliseconds: `next` turn that is free, `until` when nobody may ask. ARGV: delay, at most, wait known here (ms; -1 = no limit).
_RESERVE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'next', 'until')
local turn = math.max(now + tonumber(ARGV[3]), tonumber(known[1]) or 0, tonumber(known[2]) or 0)
local wait, delay, most = turn - now, tonumber(ARGV[1]), tonumber(ARGV[2])
if most < 0 or wait <= most then
  redis.call('HSET', KEYS[1], 'next', string.format('%.0f', turn + delay))
  redis.call('PEXPIRE', KEYS[1], wait + delay + 1000)
end
return wait
"""
_PUSH_BACK = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'next', 'until')
local till = math.max(now + tonumber(ARGV[1]), tonumber(known[2]) or 0)
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', till))
redis.call('PEXPIRE', KEYS[1], math.max(till, tonumber(known[1]) or 0) - now + 1000)
return till - now
"""
_PAUSED = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return math.max(0, (tonumber(redis.call('HGET', KEYS[1], 'until')) or 0) - now)
"""


def reserve(origin: str, *, delay: float, at_most: float | None = None) -> float:
    """Seconds to wait until my turn, which is then taken: the next one is `delay` seconds later. A wait longer than `at_most` is
    told and not taken. Without a delay there are no turns, only pauses, which are learnt of within a second. Never raises."""
    if delay <= 0:
        return _here.paused(origin) if _here.has_just_asked(origin) else paused_for(origin)
    told = _asked(_RESERVE, origin, _ms(delay), -1 if at_most is None else _ms(at_most), _ms(_here.wait(origin)))
    return _here.take(origin, told=told, delay=delay, at_most=at_most)


def push_back(origin: str, seconds: float) -> None:
    """No turn at this origin for so long (Retry-After, 429). Who waits for a turn taken before asks `paused_for` when it comes.
    Never raises."""
    _here.push_back(origin, seconds)
    _asked(_PUSH_BACK, origin, _ms(seconds))


def paused_for(origin: str) -> float:
    """Seconds for which nobody may ask this origin; 0 when it is not pushed back. Never raises."""
    return _here.learn_pause(origin, _asked(_PAUSED, origin) or 0.0)


def _ms(seconds: float) -> int:
    return max(0, int(seconds * 1000 + 0.999))


def _asked(script: str, origin: str, *arguments: int) -> float | None:
    """Seconds that the script says; None when Redis does not answer."""
    if not _here.redis_is_asked():
        return None
    try:
        return float(redis_client().eval(script, 1, f"lectern:pace:{origin}", *arguments)) / 1000
    except RedisError:
        _here.redis_is_away()
        return None


@dataclass(slots=True)
class _Turns:
    next: float = 0.0
    until: float = 0.0
    asked: float = -math.inf


class _Here:
    """The same clock for this process alone, on its monotonic time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._turns: dict[str, _Turns] = {}
        self._away_until = 0.0

    def wait(self, origin: str) -> float:
        with self._lock:
            turns = self._turns.get(origin)
            return 0.0 if turns is None else max(0.0, max(turns.next, turns.until) - time.monotonic())

    def paused(self, origin: str) -> float:
        with self._lock:
            turns = self._turns.get(origin)
            return 0.0 if turns is None else max(0.0, turns.until - time.monotonic())

    def take(self, origin: str, *, told: float | None, delay: float, at_most: float | None) -> float:
        """Remembers the turn that Redis told, or takes the next one here."""
        with self._lock:
            now = time.monotonic()
            turns = self._of(origin, now)
            turn = max(now, turns.next, turns.until) if told is None else now + told
            if at_most is None or turn - now <= at_most:
                turns.next = max(turns.next, turn + delay)
            return turn - now

    def push_back(self, origin: str, seconds: float) -> None:
        with self._lock:
            now = time.monotonic()
            turns = self._of(origin, now)
            turns.until = max(turns.until, now + seconds)

    def learn_pause(self, origin: str, seconds: float) -> float:
        """The longer one of what Redis told and what is known here."""
        self.push_back(origin, seconds)
        with self._lock:
            now = time.monotonic()
            turns = self._of(origin, now)
            turns.asked = now
            return max(0.0, turns.until - now)

    def has_just_asked(self, origin: str) -> bool:
        with self._lock:
            turns = self._turns.get(origin)
            return turns is not None and time.monotonic() - turns.asked < _PAUSE_KNOWN_SECONDS

    def redis_is_asked(self) -> bool:
        return time.monotonic() >= self._away_until

    def redis_is_away(self) -> None:
        self._away_until = time.monotonic() + _REDIS_AWAY_SECONDS

    def _of(self, origin: str, now: float) -> _Turns:
        if len(self._turns) > _MOST_REMEMBERED:
            self._turns = {name: turns for name, turns in self._turns.items() if max(turns.next, turns.until) > now}
        return self._turns.setdefault(origin, _Turns())


_here = _Here()
