"""What an open run waits for, told in words that say what to do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from django.db.models import Count, Max, Min, Q
from django.utils import timezone
from redis.exceptions import RedisError

from config.errors import LecternError
from config.tenancy import everyone
from ingestion import fleet, limiter, wakes
from ingestion.counters import count_items, count_part
from ingestion.models import IngestionRun, RunItem
from ingestion.plan import plan_for
from ingestion.services.verdicts import items_of
from ingestion.stages.slices import NEXT
from ingestion.wakes import ROUTES
from kb.access import Actor
from kb.embedding import spec_of
from kb.models import Source

PAUSE = "provider pause"
EMBED = "embed"
RATE_SECONDS = 30
# Before that the rate is that of the first page, of which everything else waits.
KNOWN_AFTER = 10  # verdicts
KNOWN_AFTER_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Situation:
    """What can be seen of a run from outside. `waiting` is stage of work → items that wait in it."""

    waiting: Mapping[str, int]
    working: bool = False
    paused: bool = False
    retry_at: str = ""
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """`position` counts from 1 and is there only while a run has not begun; `waiting_for` is empty while it is being worked."""

    counters: Mapping[str, object]
    position: int | None = None
    waiting_for: str = ""


@dataclass(frozen=True, slots=True)
class Speed:
    """How an open run gets on: verdicts a second of late, the seconds that are left at that rate (None when nothing moves, or too little
    has to tell), and of a crawl the depth that it is at and the addresses that wait."""

    per_second: float
    eta_seconds: int | None
    depth: int | None
    queue: int


def waiting_for(seen: Situation, slots: Mapping[str, int]) -> str:
    """Why nothing happens, or "" if something does."""
    if seen.working or not seen.waiting:
        return ""
    queues = [ROUTES[stage].queue for stage in seen.waiting]
    orphaned = [queue for queue in dict.fromkeys(queues) if not slots.get(queue)]
    if len(orphaned) == len(set(queues)):
        return " and ".join(f"no worker on queue {queue}" for queue in orphaned)
    if seen.paused and set(seen.waiting) == {EMBED}:
        return PAUSE
    if seen.retry_at:
        return f"another attempt at {seen.retry_at} UTC"
    served = next(queue for queue in queues if queue not in orphaned)
    if seen.ahead:
        return f"{seen.ahead} earlier {'run' if seen.ahead == 1 else 'runs'} on queue {served}"
    return f"a free worker on queue {served}"


def progress_of(run: IngestionRun, *, actor: Actor | None = None) -> Progress:
    """Counters as they are now, and what an open run waits for; a closed one has its stored numbers. Of a channel, where documents may be
    private, only what the actor may see is counted."""
    part = count_part(items_of(run, actor=actor)) if actor is not None and run.source.kind == Source.Kind.CHANNEL else None
    if not run.is_open:
        return Progress(run.counters if part is None else part)
    counters = count_items(run) if part is None else part
    seen = _situation(run)
    begun = run.started_at is not None or counters["found"]
    return Progress(counters, None if begun else seen.ahead + 1, waiting_for(seen, fleet.slots()))


def speed_of(run: IngestionRun, progress: Progress, *, actor: Actor | None = None) -> Speed | None:
    """None for a run that has ended. What was never asked for costs no time and does not count."""
    if not run.is_open:
        return None
    now = timezone.now()
    since = max(now - timedelta(seconds=RATE_SECONDS), run.started_at or run.created_at)
    items = items_of(run, actor=actor)
    looked_at = items.filter(Q(requests__gt=0) | Q(blob__isnull=False))
    done = looked_at.filter(stage=RunItem.Stage.DONE, changed_at__gt=since).count()
    seconds = (now - since).total_seconds()
    rate = done / max(1.0, seconds)
    tells = done >= KNOWN_AFTER and seconds >= KNOWN_AFTER_SECONDS
    waiting = items.filter(stage__in=(RunItem.Stage.FOUND, RunItem.Stage.FETCHED))
    found = waiting.aggregate(depth=Min("depth"), queue=Count("id", filter=Q(stage=RunItem.Stage.FOUND)))
    is_crawl = run.source.kind == Source.Kind.WEB
    return Speed(
        per_second=round(rate, 2),
        eta_seconds=ceil(_left(run, progress) / rate) if tells else None,
        depth=found["depth"] if is_crawl else None,
        queue=found["queue"],
    )


def _left(run: IngestionRun, progress: Progress) -> int:
    """Items that will still be worked: of those that wait, a crawl asks for no more than it may have."""
    counters = progress.counters
    web = plan_for(run).web if run.source.kind == Source.Kind.WEB else None
    if web is None:
        return counters["open"]
    return max(0, min(counters["open"], web.max_pages - counters["ingested"] - counters["unchanged"]))


def _situation(run: IngestionRun) -> Situation:
    now = timezone.now()
    leased = Q(lease_until__gt=now)
    rows = RunItem.objects.filter(run=run).exclude(stage=RunItem.Stage.DONE).values("stage")
    waiting, working, later = {}, bool(run.lease_until and run.lease_until > now), []
    for row in rows.annotate(number=Count("id"), leased=Count("id", filter=leased), first=Min("not_before"), held=Max("not_before")):
        waiting[NEXT[row["stage"]]] = row["number"]
        working = working or bool(row["leased"])
        # Only when every item of the stage is held back does the stage wait for a time.
        if row["first"] and row["first"] > now and not rows.filter(stage=row["stage"], not_before=None).exists():
            later.append(row["first"])
    if run.listed_at is None:
        waiting["crawl"] = waiting.get("crawl", 0) + 1
    elif not waiting:
        waiting["finish"] = 1
    return Situation(
        waiting=waiting,
        working=working or _is_worked(run, waiting),
        paused=EMBED in waiting and is_pausing(run),
        retry_at=f"{min(later):%H:%M:%S}" if later and len(later) == len(waiting) else "",
        ahead=_ahead(run),
    )


def _is_worked(run: IngestionRun, stages: Iterable[str]) -> bool:
    """Whether a worker is at a slice of the run right now; embedding leases texts and no items, so rows do not tell."""
    try:
        return any(wakes.being_worked(queue)[run.id] for queue in {ROUTES[stage].queue for stage in stages})
    except RedisError:
        return False


def _ahead(run: IngestionRun) -> int:
    """Runs that came earlier and have not begun either."""
    if run.started_at is not None or run.kind != IngestionRun.Kind.INGEST:
        return 0
    with everyone():  # whoever's they are, they are worked first
        earlier = IngestionRun.objects.filter(finished_at=None, started_at=None, kind=run.kind, created_at__lt=run.created_at)
        return earlier.count()


def is_pausing(run: IngestionRun) -> bool:
    """Whether the provider of the run's model asked everybody to wait."""
    try:
        return limiter.is_paused(spec_of(run.space.embedding_model, organization_id=run.organization_id))
    except LecternError:
        return False  # its secret is gone: the stage says so in the items' errors
