"""Before a confirmed deletion: each planned address is asked for once more. One slice of it.

What the rules of the source or robots.txt leave out by now is not asked for; what still gives a document stays; where nothing could be
learned it stays too. Verdicts are committed one by one: a kill repeats one request.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from ingestion import claims
from ingestion.crawl.urls import origin
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import Plan, plan_for
from ingestion.sources.web.frontier import Found, row_of
from ingestion.sources.web.hosts import RunHosts
from ingestion.sources.web.looking import Looking
from ingestion.sources.web.preparation import probe_site
from ingestion.sources.web.requests import Requests, Stopped
from ingestion.sources.web.state import SiteState
from ingestion.sources.web.visit import agent_of, scope_of
from ingestion.stages.items import advance, give_back, own, take
from ingestion.stages.slices import Slice
from kb.models.base import key_hash

Stage, Verdict = RunItem.Stage, RunItem.Verdict
TAKEN = 16
STILL_THERE = "The site still gives it, so it stays."


def work(run: IngestionRun, part: Slice) -> bool:
    """Ask for one slice's worth of addresses; when none is left the run is `listed`. False when a turn is farther away than a slice."""
    if not claims.lease_run(run, part.lease):
        return False
    check = Recheck(run, plan_for(run), part)
    try:
        with check.asking() as requests:
            check.prepare(requests)
            while not part.is_over and (items := take(run, Stage.FOUND, token=part.lease, limit=TAKEN, related=("document",))):
                check.ask(items, requests)
    except Stopped:
        return part.is_over
    finally:
        check.leave()
    return True


class Recheck(Looking):
    """Made for one slice; `state` is kept on the run."""

    def __init__(self, run: IngestionRun, plan: Plan, part: Slice) -> None:
        self.agent, self.part, self.until = agent_of(plan.web), part, part.until
        hosts = RunHosts(run, web=plan.web, agent=self.agent)
        super().__init__(run, plan=plan, hosts=hosts, state=SiteState(**(run.crawl_state or {})))
        self._scope = scope_of(plan.web)

    def add(self, found: Sequence[Found]) -> None:
        """Only what was planned is asked for."""

    def save(self, *, every: float = 0.0) -> None:
        self._update(until=timezone.now() + timedelta(seconds=settings.ENV.lease_seconds))
        self.part.beat()

    def prepare(self, requests: Requests) -> None:
        """What tells a page from what the site answers for made-up addresses; once a run. Raises `Stopped`."""
        host = origin(self.start)
        if self.hosts.get(host) is None:
            self.robots_came(host, self.hosts.read(host, requests))
        robots = self.hosts.get(host)
        if not self.state.probed and robots.outcome != "unavailable":
            probe_site(self.state, requests, web=self.web, robots=robots)
        if self.state.probe and not self.state.start_seen:
            start = row_of(self.run, key_hash(self.start_key), Found(self.start, self.start_key, RunItem.Via.START, 0))
            self.look(start, requests)
            self.start_is_read(is_shell=start.reason == "needs_javascript")
        self.save()

    def ask(self, items: Sequence[RunItem], requests: Requests) -> None:
        """Give each its verdict; what was not reached is free again."""
        left = list(items)
        try:
            while left and not self.part.is_over:
                self._ask_again(left[0], requests)
                self._settle(left.pop(0))
        finally:
            give_back(left)
        self.save()

    def _ask_again(self, item: RunItem, requests: Requests) -> None:
        if item.document is None or item.document.tombstoned_at:
            self.close(item, Verdict.SKIPPED, "superseded", "It was removed meanwhile.")
        elif item.key != self.start_key and (refused := self._scope.refusal(item.url)):
            self.close(item, Verdict.SKIPPED, *refused)
        elif self.look(item, requests) is not None or item.verdict == Verdict.UNCHANGED:
            self.close(item, Verdict.SKIPPED, "still_there", STILL_THERE)

    def _settle(self, item: RunItem) -> None:
        with claims.writing(self.run, lease=self.part.lease):
            if own(self.run, [item]):
                names = ("verdict", "reason", "error", "requests", "response", "url")
                advance(Stage.DONE, [(item, {name: getattr(item, name) for name in names})])

    def leave(self) -> None:
        """Free the run for the next slice, and say so when that is the end."""
        waits = RunItem.objects.filter(run=self.run, stage=Stage.FOUND).exists()
        self._update(until=None, listed=not waits)

    def _update(self, *, until: object, listed: bool = False) -> None:
        now = timezone.now()
        with claims.updating(self.run) as row:
            if row.lease_token != self.part.lease:
                raise claims.ClaimLost("Another worker checks this deletion.")
            row.crawl_state, row.progressed_at, row.lease_until = asdict(self.state), now, until
            row.warnings = list(self.state.warnings)
            if until is None:
                row.lease_token = None
            if listed:
                row.listed_at, row.stop_reason = now, IngestionRun.StopReason.COMPLETED
            row.save(update_fields=["crawl_state", "progressed_at", "lease_until", "lease_token", "warnings", "listed_at", "stop_reason"])
