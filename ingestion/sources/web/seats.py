"""Who may be asked next: a crawl has few seats, and a host that answers slowly, or not at all, must not hold all of them.

Pure. A host that has not answered yet, or is slow, gets few seats while addresses of others wait, and all slow ones together get half of
them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable


class Seats:
    """`most` seats in all, `limit` for each host, and the hosts that hold one now, once for each. `answered` are hosts that have answered
    something, `slow` those that let somebody wait; set `alone` when no address of another host waits."""

    def __init__(
        self,
        taken: Iterable[str],
        *,
        most: int,
        limit: Callable[[str], int],
        answered: Collection[str],
        slow: Collection[str],
    ) -> None:
        self._counts = Counter(taken)
        self._limit, self._answered, self._slow = limit, answered, slow
        self.most, self.alone = most, False

    @property
    def free(self) -> int:
        return self.most - self._counts.total()

    def room(self, host: str) -> int:
        """How many more addresses of the host may be asked for."""
        held, few, half = self._counts[host], max(1, self.most // 4), max(1, self.most // 2)
        most = self._limit(host)
        if host in self._slow:
            left = half - sum(self._counts[slow] for slow in self._slow)
            most = min(most, held + left if self.alone else min(few, held + left))
        elif host not in self._answered:
            most = min(most, half if self.alone else few)
        return max(0, min(self.free, most - held))

    def sit(self, host: str) -> None:
        self._counts[host] += 1

    def full(self) -> list[str]:
        """Hosts that hold seats and get no more."""
        return sorted(host for host in self._counts if not self.room(host))
