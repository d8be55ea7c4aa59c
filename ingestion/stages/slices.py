"""One slice of a run's stage: about twenty seconds of work behind one message."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from django.conf import settings
from django.db import Error

from config.errors import LecternError
from config.registry import Registry
from config.tenancy import everyone, tenant
from ingestion import claims, wakes
from ingestion.following import follow
from ingestion.models import IngestionRun, RunItem
from ingestion.stages.items import open_stages, put_back
from ingestion.wakes import ROUTES

log = logging.getLogger(__name__)

# The stage of work that waits in each stage of an item.
NEXT = {
    RunItem.Stage.FOUND: "crawl",
    RunItem.Stage.FETCHED: "extract",
    RunItem.Stage.PARTED: "recognize",
    RunItem.Stage.EXTRACTED: "embed",
    RunItem.Stage.EMBEDDED: "publish",
}
RELATED = ("source", "version", "space__embedding_model", "knowledge_base")


@dataclass(slots=True)
class Slice:
    """The time that a message may work, the lease of the items that it takes, and the heartbeat of what it holds."""

    stage: str
    token: str
    run: IngestionRun
    until: float = field(default_factory=lambda: time.monotonic() + settings.ENV.slice_seconds)
    lease: UUID = field(default_factory=uuid4)
    _beat: float = 0.0

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until

    def beat(self) -> None:
        """Renew what the slice holds in Redis; cheap, at most once in a quarter of a lease."""
        if time.monotonic() - self._beat > settings.ENV.lease_seconds / 4:
            self._beat = time.monotonic()
            wakes.hold(self.stage, self.token)
            claims.renew_gate(self.run)


def work(stage: str, run_id: UUID, token: str) -> None:
    """Work one slice, then wake what it made possible. A run that is closed or unknown needs nothing, nor does the crawl of one
    that is listed."""
    with everyone():
        run = IngestionRun.objects.select_related(*RELATED).filter(id=run_id).first()
    if run is None or not run.is_open or (stage == "crawl" and run.listed_at is not None):
        wakes.release(stage, token)
        return
    with tenant(run.organization_id):
        _work(stage, run, token)


def _work(stage: str, run: IngestionRun, token: str) -> None:
    part = Slice(stage, token, run)
    part.beat()
    wakes.was_called(stage, run.id)
    goes_on = True
    try:
        follow(run)
        goes_on = _worker(stage, run)(run, part) is not False
    except claims.ClaimLost:
        log.info("Run %s no longer holds its source; the slice of %s ends.", run.id, stage)
        return
    except LecternError as error:
        if error.transient:
            _stop(run, part, error)
            raise
        log.warning("Run %s cannot go on in the stage %s: %s", run.id, stage, error.message)
        claims.finish(run, status=IngestionRun.Status.FAILED, stop_reason="", error=error.message)
    except Exception as error:
        _stop(run, part, error)
        raise
    finally:
        wakes.release(stage, token)
    goes_on = goes_on or (ROUTES[stage].most == 1 and wakes.was_called(stage, run.id))
    follow_up(run, idle="" if goes_on else stage)


def _worker(stage: str, run: IngestionRun) -> Callable[[IngestionRun, Slice], bool | None]:
    if stage == "crawl" and run.confirms_id:
        return Registry("stage", settings.STAGES).load("recheck")
    if stage == "crawl":
        return Registry("source", settings.CRAWLS).load(run.source.kind)
    return Registry("stage", settings.STAGES).load(stage)


def _stop(run: IngestionRun, part: Slice, error: Exception) -> None:
    """Free what the slice holds and tell the run of the error. Other items go on at once; where the stage itself is at fault,
    the sweep goes on trying, and a run that cannot go on is abandoned in time."""
    message = f"The stage {part.stage} stopped with {type(error).__name__}: {error}"[:2000]
    with suppress(Error, claims.ClaimLost):
        if put_back(run, part.lease, error):
            follow_up(run)
        IngestionRun.objects.filter(id=run.id, finished_at=None).update(error=message)


def follow_up(run: IngestionRun, shares: dict[str, int] | None = None, *, idle: str = "") -> None:
    """Wake the stages in which the run has something to do, but not `idle`: it has just said that nothing can be taken there."""
    fresh = IngestionRun.objects.filter(id=run.id, finished_at=None).first()
    if fresh is None:
        return
    interactive = fresh.kind == IngestionRun.Kind.PUSH
    waiting = open_stages(fresh.id)
    for item_stage, rows in waiting.items():
        stage = NEXT[item_stage]
        if stage not in ("crawl", idle):
            wakes.wake(fresh.id, stage, rows=rows, share=(shares or {}).get(stage, 2), interactive=interactive)
    if fresh.listed_at is None and idle != "crawl":
        wakes.wake(fresh.id, "crawl", interactive=interactive)
    elif fresh.listed_at and not waiting and not RunItem.objects.filter(run=fresh).exclude(stage=RunItem.Stage.DONE).exists():
        wakes.wake(fresh.id, "finish", interactive=interactive)
