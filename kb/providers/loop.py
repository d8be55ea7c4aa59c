"""One event loop in a side thread, for async client libraries under synchronous callers: connections stay open between calls.

Works from any thread, also from one that runs a loop of its own, and after a fork.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Coroutine
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")

_lock = Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner: int | None = None


def run_blocking(work: Coroutine[Any, Any, T], *, deadline: float) -> T:
    """The result of `work`; TimeoutError (and the work is cancelled) after `deadline` seconds."""
    return asyncio.run_coroutine_threadsafe(_within(work, deadline), _running_loop()).result()


async def _within(work: Coroutine[Any, Any, T], deadline: float) -> T:
    async with asyncio.timeout(deadline):
        return await work


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _owner
    with _lock:
        if _loop is None or _owner != os.getpid():
            _loop, _owner = asyncio.new_event_loop(), os.getpid()
            Thread(target=_loop.run_forever, name="provider-loop", daemon=True).start()
        return _loop


def close_with(owner: object, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Call `close` in the loop when the owner is let go; nobody waits for it."""
    weakref.finalize(owner, _close, close, os.getpid()).atexit = False


def _close(close: Callable[[], Coroutine[Any, Any, None]], opened_in: int) -> None:
    if _loop is not None and opened_in == os.getpid():
        asyncio.run_coroutine_threadsafe(close(), _loop)


def _reset_after_fork() -> None:
    global _lock, _loop
    _lock, _loop = Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
