"""A web source under one run: its settings, what is known of the site, and how far the crawl is against its limits."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from ingestion import claims
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan
from ingestion.sources.web import frontier, settling
from ingestion.sources.web.frontier import Found
from ingestion.sources.web.hosts import RunHosts
from ingestion.sources.web.settling import Settled
from ingestion.sources.web.state import SiteState
from ingestion.sources.web.visit import ATTEMPTS_PER_PAGE, LINKS_CUT, Visit, agent_of

MAX_BYTES = 512 * 1024 * 1024
CHECKED_EVERY = 0.5
TOO_MANY = f"More than {frontier.QUEUE_LIMIT:,} addresses wait to be fetched; what came beyond that was left out. Narrow the scope."
StopReason = IngestionRun.StopReason


class Site(Visit):
    """Made for one slice; `state` is kept on the run, everything else in rows."""

    def __init__(self, run: IngestionRun, *, plan: Plan, lease: UUID) -> None:
        self.agent, self.lease = agent_of(plan.web), lease
        hosts = RunHosts(run, web=plan.web, agent=self.agent)
        super().__init__(run, plan=plan, hosts=hosts, state=SiteState(**(run.crawl_state or {})))
        self._saved_at = self._checked_at = time.monotonic()
        self._count_at = 0.0
        self._finished = False

    # --- limits ---------------------------------------------------------------------------------------------------------

    def totals(self, *, fresh: bool = False) -> frontier.Totals:
        """As counted some seconds ago, with what this slice committed since."""
        if fresh or time.monotonic() > self._count_at:
            started = time.monotonic()
            self._totals = frontier.totals(self.run)
            self._count_at = frontier.next_count(started)
        return self._totals

    def limit(self) -> tuple[str, str, str] | None:
        """(stop reason, code, sentence) when the crawl has to end before it has seen everything."""
        totals, pages, minutes = self.totals(), self.web.max_pages, self.plan.settings.time_budget_minutes
        if self._worked() > minutes * 60:
            return StopReason.TIME_LIMIT, "time_limit", f"The run used up its {minutes} minutes. Raise settings.time_budget_minutes."
        if totals.requests >= ATTEMPTS_PER_PAGE * pages:
            return StopReason.FETCH_LIMIT, "fetch_limit", f"The run made {ATTEMPTS_PER_PAGE} requests for each of web.max_pages. Raise it."
        if totals.bytes + self.state.bytes >= MAX_BYTES:
            return StopReason.BYTE_LIMIT, "byte_limit", f"The run read {MAX_BYTES // 2**20} MiB, the most that a run may. Narrow the scope."
        if self.pages_left() <= 0 and self._is_full():
            listed = f" The sitemaps list {self.state.sitemap_pages:,}." if self.state.sitemap_pages else ""
            return (
                StopReason.PAGE_LIMIT,
                "page_limit",
                f"The run has its {pages:,} pages.{listed} Raise web.max_pages or narrow the scope.",
            )
        return None

    def _is_full(self) -> bool:
        """Whether every page that may be had is read, and others wait: what was fetched may still turn out to be no document."""
        at = frontier.level(self.run)
        return at.unread is None and at.found is not None and self.pages_left(fresh=True) <= 0

    def pages_left(self, *, fresh: bool = False) -> int:
        return self.web.max_pages - self.totals(fresh=fresh).pages

    def _worked(self) -> float:
        return self.run.slices_worked_seconds + time.monotonic() - self._saved_at

    # --- the frontier ---------------------------------------------------------------------------------------------------

    def level(self) -> int | None:
        """The depth that is asked for now; None while pages above it are not read yet, or nothing waits."""
        at = frontier.level(self.run)
        return at.found if at.is_open else None

    def room(self, most: int) -> int:
        """How many addresses may be under way at a time. Where made-up addresses get a page, the start page comes first and alone:
        it tells whether every address gets that page, and whether that is because scripts make the real one."""
        if not self.state.probe or self.state.start_seen:
            return most
        start = RunItem.objects.filter(run=self.run, key=self.start_key).values_list("stage", "reason", "response").first()
        is_shell = start is not None and (start[1] == "needs_javascript" or bool((start[2] or {}).get("render")))
        if not is_shell and (start is None or start[0] in (RunItem.Stage.FOUND, RunItem.Stage.FETCHED)):
            return 1 if start is None or start[0] == RunItem.Stage.FOUND else 0
        self.start_is_read(is_shell=is_shell)
        return most

    def add(self, found: Sequence[Found]) -> None:
        with claims.writing(self.run, lease=self.lease):
            frontier.add(self.run, found)

    # --- answers --------------------------------------------------------------------------------------------------------

    def write(self, settled: Sequence[Settled]) -> None:
        settling.write(self.run, settled, plan=self.plan, admission=self.admission, lease=self.lease)
        for each in settled:
            self._totals.requests += each.asked.requests
            self._totals.bytes += len(each.asked.answer.body) if each.asked.answer is not None else 0
            self._totals.pages += each.meaning.kind in ("page", "file", "unchanged")
            if each.item.key == self.start_key and not (each.meaning.kind == "failed" and settling.tries_again(each) is not None):
                self.warn_of_start(each)

    def give_up(self, host: str, reason: str, text: str) -> None:
        """Leave a host that fails again and again alone until the next run."""
        why = f"{host} failed many times in a row, so the rest was not asked for. {text}"
        with claims.writing(self.run, lease=self.lease):
            frontier.close_host(self.run, host, reason=reason, text=why)
        self.state.warn(why)

    # --- the run's row --------------------------------------------------------------------------------------------------

    def save(self, *, every: float = 0.0) -> None:
        """Keep the state and the time worked, and renew the lease. Raises `ClaimLost` when somebody else crawls the run."""
        if self._finished or time.monotonic() - self._saved_at < every:
            return
        with claims.updating(self.run) as row:
            self._update(row, until=timezone.now() + timedelta(seconds=settings.ENV.lease_seconds))

    def check(self) -> None:
        """Raises `ClaimLost` within half a second of the run's end: a crawl that was cancelled asks for nothing more."""
        if time.monotonic() - self._checked_at > CHECKED_EVERY:
            self._checked_at = time.monotonic()
            if not self._finished and not claims.check(self.run):
                raise claims.ClaimLost("This run no longer holds its source.")

    def leave(self) -> None:
        """Free the crawl for the next slice, if it is still ours."""
        if not self._finished:
            rows = IngestionRun.objects.filter(id=self.run.id, lease_token=self.lease, finished_at=None)
            rows.update(
                lease_token=None,
                lease_until=None,
                crawl_state=asdict(self.state),
                slices_worked_seconds=F("slices_worked_seconds") + (time.monotonic() - self._saved_at),
            )

    def finish_if_done(self) -> bool:
        """End the crawl when nothing waits and nothing is left to be read; looked at again under the lock that keeps readers out."""
        at = frontier.level(self.run)
        if at.found is not None or at.unread is not None:
            return False
        return self.finish(StopReason.COMPLETED, "", "")

    def finish(self, stop_reason: str, code: str, text: str) -> bool:
        """End the crawl; False if pages were found meanwhile and it was to end for lack of them."""
        with claims.updating(self.run) as row:
            if code:
                left = frontier.close_rest(self.run, reason=code, text=text)
                self.state.warn(f"{text} {left:,} addresses that it had found were left.")
            elif RunItem.objects.filter(run=self.run, stage__in=(RunItem.Stage.FOUND, RunItem.Stage.FETCHED)).exists():
                return False
            elif RunItem.objects.filter(run=self.run, reason="queue_limit").exists():
                self.state.warn(TOO_MANY)
                stop_reason = StopReason.FETCH_LIMIT
            elif cut := RunItem.objects.filter(run=self.run, response__links_cut=True).order_by("id").first():
                self.state.warn(LINKS_CUT.format(cut.url[:500]))
                stop_reason = StopReason.FETCH_LIMIT
            self._update(row, until=None, stop_reason=stop_reason)
        self._finished = True
        return True

    def _update(self, row: IngestionRun, *, until: object, stop_reason: str = "") -> None:
        if row.lease_token != self.lease:
            raise claims.ClaimLost("Another worker crawls this run.")
        now = timezone.now()
        row.status = IngestionRun.Status.RUNNING
        row.started_at = row.started_at or now
        row.progressed_at = now
        row.crawl_state = asdict(self.state)
        row.slices_worked_seconds += time.monotonic() - self._saved_at
        row.warnings = [*self.plan.warnings, *self.state.warnings]
        row.lease_until = until
        if until is None:
            row.lease_token, row.listed_at, row.stop_reason = None, now, stop_reason
        row.save()
        self.run.slices_worked_seconds = row.slices_worked_seconds
        self._saved_at = time.monotonic()
