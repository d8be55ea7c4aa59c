"""Places for queries in this process. Each organization has fewer than there are, so that the queries of one never take all of them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from uuid import UUID

from config.errors import TooManyRequests

RETRY_SECONDS = 5


class Places:
    """`total` queries run at once, `each` of them of one organization; who finds none free waits `patience` seconds at most, because
    a query that waits holds a thread of the web server. Of those that wait, as many as run of their organization, the rest is refused
    at once."""

    def __init__(self, *, total: int, each: int, patience: float) -> None:
        self._total, self._each, self._patience = total, each, patience
        self._running: Counter[UUID] = Counter()
        self._waiting: Counter[UUID] = Counter()
        self._changed = Condition()

    @contextmanager
    def hold(self, organization: UUID) -> Iterator[None]:
        """Raises `TooManyRequests`."""
        with self._changed:
            self._enter(organization)
        try:
            yield
        finally:
            with self._changed:
                self._leave(self._running, organization)
                self._changed.notify_all()

    def _enter(self, organization: UUID) -> None:
        if not self._is_free(organization):
            if self._waiting[organization] >= self._each:
                raise self._refusal(organization)
            self._waiting[organization] += 1
            try:
                if not self._changed.wait_for(lambda: self._is_free(organization), timeout=self._patience):
                    raise self._refusal(organization)
            finally:
                self._leave(self._waiting, organization)
        self._running[organization] += 1

    def _is_free(self, organization: UUID) -> bool:
        return self._running[organization] < self._each and self._running.total() < self._total

    def _refusal(self, organization: UUID) -> TooManyRequests:
        whose = "of your organization" if self._running[organization] >= self._each else "of others"
        return TooManyRequests(f"Too many queries {whose} run here. Try again in {RETRY_SECONDS} seconds.", retry_after=RETRY_SECONDS)

    @staticmethod
    def _leave(counts: Counter[UUID], organization: UUID) -> None:
        counts[organization] -= 1
        if not counts[organization]:
            del counts[organization]  # organizations come and go
