"""The crawl of a web source: one slice of it. Threads ask the site, this thread takes addresses and commits what came.

Level by level: a depth is asked for when every page of the depths above has been read, so that a page has the depth of its shortest
way and a limit on depth means the same in every run. At any moment at most `WINDOW` addresses are asked for and not committed: that is
what a kill repeats. `seats` keeps a slow host from holding all of them.
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass

from django.conf import settings

from ingestion import claims, wakes
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.urls import origin
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import plan_for
from ingestion.sources.web import settling
from ingestion.sources.web.hosts import refusal
from ingestion.sources.web.preparation import prepare
from ingestion.sources.web.rendering import Rendering, is_wanted
from ingestion.sources.web.requests import Asked, Requests, Stopped
from ingestion.sources.web.seats import Seats
from ingestion.sources.web.site import Site
from ingestion.stages.items import Outcome, close, give_back, own, take
from ingestion.stages.slices import Slice
from kb.models import Document

Stage, StopReason = RunItem.Stage, IngestionRun.StopReason
CONNECTIONS = WINDOW = 12
TAKEN = 64  # addresses taken together where no pauses are wanted: taking them costs as much as asking for some
TOGETHER = WINDOW  # answers that are committed together if they come within GATHER_SECONDS: a commit costs more than an answer
GATHER_SECONDS = 0.03
SLOW_SECONDS = 1.0  # after which a host that has not answered is slow
SLOW = 2.0  # seconds of pauses that may be waited for at a time: a slow site is not asked by a dozen threads that sleep
READERS = 2  # slices that read pages: while one writes what was read, another's child reads
IDLE_SECONDS = 1.0  # waiting for pages to be read, before the worker is given to somebody else
FAILURES_IN_A_ROW = 20  # a host that fails so often is left alone until the next run
TROUBLE = ("server_error", "unreachable", "rate_limited")


def work(run: IngestionRun, part: Slice) -> bool:
    """Crawl for one slice; False when there is nothing to do until pages are read or a pause is over."""
    if not claims.lease_run(run, part.lease):
        return False
    plan = plan_for(run)
    site = Site(run, plan=plan, lease=part.lease)
    fetcher = Fetcher(
        user_agent=site.agent,
        timeout_seconds=plan.web.timeout_seconds,
        allowed=settings.ENV.allowed_private_networks,
        connections=CONNECTIONS,
    )
    try:
        requests = Requests(fetcher, delay=site.hosts.delay, at_most=max(5.0, part.until - time.monotonic()))
        rendering = Rendering(site, requests, fetcher, until=part.until)
        with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="crawl") as pool, closing(rendering):
            crawl = Crawl(site, part, requests, rendering, pool)
            try:
                goes_on = crawl.work()
                crawl.give_back()
                return goes_on
            finally:
                crawl.leave()
    finally:
        fetcher.close()


@dataclass(frozen=True, slots=True)
class Flight:
    """What a thread is at: an address, or the robots.txt of a host. `number` counts them in the order of their sending."""

    what: RunItem | str
    number: int

    @property
    def host(self) -> str:
        return self.what if isinstance(self.what, str) else origin(self.what.url)


class Crawl:
    """What one slice has under way: requests that fly, addresses whose host's robots.txt is being read, and those to be asked for next."""

    def __init__(self, site: Site, part: Slice, requests: Requests, rendering: Rendering, pool: ThreadPoolExecutor) -> None:
        self.site, self.part, self.requests, self.rendering, self.pool = site, part, requests, rendering, pool
        self.run = site.run
        self.flying: dict[Future[Asked], Flight] = {}
        self.parked: dict[str, list[RunItem]] = defaultdict(list)
        self.taken: deque[RunItem] = deque()
        self.failures: Counter[str] = Counter()
        self.known_until: dict[str, int] = {}  # host to the last flight that was sent when its last failure was known
        self.answered: set[str] = set()
        self.sent = 0
        self.idle_since: float | None = None
        self.turn_is_away = self.has_asked = False

    def work(self) -> bool:
        if not self.site.state.ready and not prepare(self.site, self.requests, self.part):
            self.site.save()  # waiting for a turn is no death
            return self.part.is_over
        while True:
            self._collect()
            self.site.check()
            self.site.save(every=2.0)
            self.part.beat()
            if self.part.is_over:
                if not self.flying:
                    return True
                continue
            if stopped := self.site.limit():
                if not self.flying:
                    self.site.finish(*stopped)
                    return True
                continue
            if self.turn_is_away:
                if not self.flying:
                    self.site.save()
                    return self.has_asked
                continue
            if not self._fill() and not self.flying:
                if self._is_at_the_end():
                    return True
                if self.idle_since is None:
                    self.idle_since = time.monotonic()
                if time.monotonic() - self.idle_since > IDLE_SECONDS:
                    return False
                time.sleep(0.05)
            elif self.flying:
                self.idle_since = None

    def give_back(self) -> None:
        """What was taken and not asked for is free again. After an error, whoever called the slice frees what it held."""
        give_back([*self.taken, *(item for items in self.parked.values() for item in items)])

    def leave(self) -> None:
        """Whatever happened: nobody waits for a turn any more, and the next slice may come."""
        self.requests.stop()
        self.site.leave()

    def _fill(self) -> bool:
        """Ask for as many addresses as may fly; False if there is none now."""
        seats = self._seats()
        if seats.free <= 0:
            return False
        if not any(seats.room(origin(item.url)) for item in self.taken):
            self._take(seats)
        asked, waiting = 0, deque()
        while self.taken and seats.free > 0:
            item = self.taken.popleft()
            if not seats.room(origin(item.url)):
                waiting.append(item)
                continue
            seats.sit(origin(item.url))
            self._send(item)
            asked += 1
        self.taken.extendleft(reversed(waiting))
        return bool(asked)

    def _seats(self) -> Seats:
        """The robots.txt of a host needs none: those who wait for it sit already."""
        taken = [flight.host for flight in self.flying.values() if not isinstance(flight.what, str)]
        taken += [host for host, items in self.parked.items() for _ in items]
        slow = self.requests.slow_hosts(SLOW_SECONDS)
        return Seats(taken, most=self.site.room(WINDOW), limit=self._limit, answered=self.answered, slow=slow)

    def _take(self, seats: Seats) -> None:
        """More addresses: first of hosts that have seats left, and if none of those waits, of the others."""
        depth = self.site.level()
        flying = sum(not isinstance(flight.what, str) for flight in self.flying.values())
        is_quick = self._limit(origin(self.site.web.start_url)) == WINDOW
        most = min(TAKEN if is_quick else seats.free, self.site.pages_left() - flying - len(self.taken))
        if depth is None or most <= 0:
            return
        full = seats.full()
        items = self._lease(depth, most, without=full)
        if not items and full:
            seats.alone = True
            items = [] if self.taken else self._lease(depth, most)
        self.taken.extend(items)

    def _lease(self, depth: int, most: int, *, without: Sequence[str] = ()) -> list[RunItem]:
        items = take(self.run, Stage.FOUND, token=self.part.lease, limit=most, related=(), depth=depth, without=without)
        rows = Document.objects.filter(source_id=self.run.source_id, key_hash__in=[bytes(item.key_hash) for item in items])
        documents = {bytes(document.key_hash): document for document in rows}
        for item in items:
            item.document = documents.get(bytes(item.key_hash))
            item.epoch = item.document.epoch if item.document is not None else 0
        return items

    def _limit(self, host: str) -> int:
        """Fewer at a time where the host wants long pauses."""
        delay = self.site.hosts.delay(host)
        return WINDOW if delay < SLOW / WINDOW else max(1, int(SLOW / delay))

    def _send(self, item: RunItem) -> None:
        host = origin(item.url)
        robots = self.site.hosts.get(host)
        if robots is None:
            if host not in self.parked:
                self._fly(self.pool.submit(self.site.hosts.read, host, self.requests), host)
            self.parked[host].append(item)
        elif refused := refusal(robots, item.url):
            self._close(item, *refused)
        elif is_wanted(item):
            self._fly(self.rendering.submit(item.url), item)
        else:
            validators = self.site.validators(item)
            most = self.site.plan.settings.max_bytes_per_page
            self._fly(self.pool.submit(self.requests.ask_page, item.url, max_bytes=most, **validators), item)

    def _fly(self, future: Future[Asked], what: RunItem | str) -> None:
        self.sent += 1
        self.flying[future] = Flight(what, self.sent)

    def _close(self, item: RunItem, reason: str, text: str) -> None:
        verdict = RunItem.Verdict.FAILED if reason == "robots_unavailable" else RunItem.Verdict.SKIPPED
        with claims.writing(self.run, lease=self.site.lease):
            if own(self.run, [item]):
                close(item, Outcome(verdict, reason, text))
        if item.key == self.site.start_key:
            self.site.start_is_refused(text)

    def _collect(self) -> None:
        """Commit every answer that is there; waits a moment for one."""
        done, more = wait(self.flying, timeout=0.2, return_when=FIRST_COMPLETED)
        until = time.monotonic() + GATHER_SECONDS
        while done and more and len(done) < TOGETHER and (left := until - time.monotonic()) > 0:
            came, more = wait(more, timeout=left, return_when=FIRST_COMPLETED)
            done |= came
        settled, unasked = [], []
        for flight, future in sorted(((self.flying.pop(future), future) for future in done), key=lambda came: came[0].number):
            what = flight.what
            try:
                asked = future.result()
            except Stopped:
                self.turn_is_away = True  # longer than a slice: asking again at once would keep the worker and the database busy
                unasked += self.parked.pop(what) if isinstance(what, str) else [what]
                continue
            self.has_asked = True
            if asked.answer is not None and not isinstance(what, str):
                self.answered.add(flight.host)  # with a page: a robots.txt may be quick where nothing else is
            if isinstance(what, str):
                self.site.robots_came(what, asked)
                for item in self.parked.pop(what):
                    self._send(item)
            else:
                settled.append((flight, self.site.understand(what, asked)))
        if unasked:
            give_back(unasked)
        if not settled:
            return
        self.site.write([each for _, each in settled])
        wakes.wake(self.run.id, "extract", rows=len(settled), share=READERS)
        for flight, each in settled:
            self._note_trouble(flight.number, each)

    def _note_trouble(self, number: int, settled: settling.Settled) -> None:
        """A host that fails again and again is left alone. Only what was sent after its last failure was known says that it is well."""
        host, reason = origin(settled.asked.url), settled.meaning.reason
        if reason not in TROUBLE:
            if number > self.known_until.get(host, 0):
                self.failures[host] = 0
            return
        settling.slow_down(settled)
        self.known_until[host] = self.sent
        self.failures[host] += 1
        if self.failures[host] == FAILURES_IN_A_ROW:
            give_back(self.taken)
            self.taken.clear()
            self.site.give_up(host, reason, settled.meaning.text)

    def _is_at_the_end(self) -> bool:
        return not self.parked and self.site.finish_if_done()
