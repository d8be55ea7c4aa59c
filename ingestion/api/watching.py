"""What the watchers of a run share: one look at its rows serves all of them in this process.

Counting the items of a large run costs a good part of a second of the database. So what was counted is told again for a while, longer the
more it cost; that a run has ended is seen at once, because its row is read each time.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar
from uuid import UUID

T = TypeVar("T")
CHEAP_SECONDS = 0.05
COST_SHARE = 10  # dearer looks take at most a tenth of the time
RUNS_REMEMBERED = 64


@dataclass(slots=True)
class _Seen(Generic[T]):
    lock: Lock = field(default_factory=Lock)
    found: T | None = None
    until: float = 0.0


class Watching(Generic[T]):
    """What was seen of each run lately."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: OrderedDict[UUID, _Seen[T]] = OrderedDict()

    def seen_of(self, run_id: UUID, look: Callable[[], T], *, kept: float) -> T:
        """What was seen less than `kept` seconds ago, or longer if looking is dear; else what `look` sees now. Of several who ask at the
        same time one looks, and the others wait for that."""
        seen = self._entry(run_id)
        with seen.lock:
            started = time.monotonic()
            if seen.found is None or started >= seen.until:
                seen.found = look()
                took = time.monotonic() - started
                seen.until = started + took + (kept if took < CHEAP_SECONDS else max(kept, COST_SHARE * took))
            return seen.found

    def _entry(self, run_id: UUID) -> _Seen[T]:
        with self._lock:
            seen = self._seen.setdefault(run_id, _Seen())
            self._seen.move_to_end(run_id)
            while len(self._seen) > RUNS_REMEMBERED:
                self._seen.popitem(last=False)
            return seen
