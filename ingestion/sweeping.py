"""The sweep: makes lost messages harmless. It looks at rows alone, so a flushed Redis or a dead fleet needs no other repair."""

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from redis.exceptions import RedisError

from ingestion import claims, fires, fleet, wakes
from ingestion.models import IngestionRun, RunItem
from ingestion.refill import refilling
from ingestion.services.progress import is_pausing
from ingestion.services.runs import settle_closed_run
from ingestion.stages.items import open_stages
from ingestion.stages.slices import NEXT, follow_up
from kb.models import EmbeddingSpace, Source
from kb.stores.provision import provision_space

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Slots of living workers by queue, and the slices of each run that take some of them."""

    slots: Mapping[str, int]
    worked: Mapping[str, Counter[UUID]]

    def serves(self, queue: str, run_id: UUID) -> bool:
        """Whether the run is being worked on the queue, or could be: a slot is free."""
        worked = self.worked[queue]
        return worked[run_id] > 0 or self.slots.get(queue, 0) > worked.total()


def capacity() -> Capacity:
    return Capacity(fleet.slots(), {queue: wakes.being_worked(queue) for queue in fleet.known_queues()})


def sweep() -> None:
    """Fire schedules that are due, wake every open run that could be worked, mark whether it could, reap the dead, and settle items of
    closed runs.

    One at a time: with thousands of open runs a sweep takes longer than the time to the next.
    """
    with wakes.alone("sweep") as alone:
        if alone:
            _sweep()


def _sweep() -> None:
    fires.fire_due()
    runs = list(IngestionRun.objects.filter(finished_at=None).select_related("source").order_by("created_at"))
    try:
        found = capacity()
        if not wakes.looked_lately("sweep", seconds=settings.ENV.dead_run_seconds / 4):
            forget_eligibility(runs)
        shares = _shares(runs, found.slots)
        for run in runs:
            follow_up(run, shares.get(run.id))
            note_eligibility(run, found)
        refilling.wake_all()
    except RedisError as error:
        log.warning("The sweep could not reach the message broker: %s", error)
        return
    for source in Source.objects.filter(id__in={run.source_id for run in runs}):
        for reaped in claims.reap_dead(source):
            log.warning("Run %s of %s was abandoned.", reaped.id, source)
    settle_closed()
    provision_spaces()


def _shares(runs: list[IngestionRun], slots: Mapping[str, int]) -> dict[UUID, dict[str, int]]:
    """Run to stage to how many messages it may have under way."""
    contenders: dict[str, dict[UUID, list[UUID]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for item_stage in open_stages(run.id):
            contenders[NEXT[item_stage]][run.organization_id].append(run.id)
    shares: dict[UUID, dict[str, int]] = defaultdict(dict)
    for stage, organizations in contenders.items():
        available = slots.get(wakes.ROUTES[stage].queue, 0)
        for run_id, share in wakes.fair_shares(available, organizations).items():
            shares[run_id][stage] = share
    return shares


def note_eligibility(run: IngestionRun, found: Capacity) -> None:
    """Keep since when the run could have gone on; a run that waits for its turn, a worker or its provider starts anew."""
    eligible, now = could_go_on(run, found), timezone.now()
    is_new = eligible != (run.eligible_since is not None)
    is_old = eligible and run.eligible_at is not None and now - run.eligible_at > timedelta(seconds=settings.ENV.dead_run_seconds / 8)
    if is_new or is_old:
        since = (now if is_new else run.eligible_since) if eligible else None
        with transaction.atomic():
            IngestionRun.objects.filter(id=run.id, finished_at=None).update(eligible_since=since, eligible_at=now)


def forget_eligibility(runs: list[IngestionRun]) -> None:
    """After a time without a sweep (everything was down) nobody knows what could have gone on meanwhile: the wait starts anew."""
    IngestionRun.objects.filter(id__in=[run.id for run in runs], finished_at=None).update(eligible_since=None)
    for run in runs:
        run.eligible_since = None


def could_go_on(run: IngestionRun, found: Capacity) -> bool:
    """Whether a slice of the run is being worked, or a worker of one of its queues is free."""
    waiting = open_stages(run.id)
    if not waiting and RunItem.objects.filter(run=run).exclude(stage=RunItem.Stage.DONE).exists():
        return False  # leased, or to be tried again later
    stages = {NEXT[item_stage] for item_stage in waiting} or {"crawl" if run.listed_at is None else "finish"}
    if "embed" in stages and is_pausing(run):
        stages.remove("embed")
    return any(found.serves(wakes.ROUTES[stage].queue, run.id) for stage in stages)


def settle_closed() -> None:
    """Items of cancelled and reaped runs get their verdict, batch by batch."""
    unsettled = RunItem.objects.exclude(stage=RunItem.Stage.DONE).filter(run__finished_at__isnull=False)
    for run_id in set(unsettled.values_list("run_id", flat=True)[:1000]):
        settle_closed_run(IngestionRun.objects.get(id=run_id))


def provision_spaces() -> None:
    """Spaces whose partition was not made when their model was registered (no worker, no broker)."""
    for space in EmbeddingSpace.objects.filter(provisioned_at=None):
        provision_space(space)
