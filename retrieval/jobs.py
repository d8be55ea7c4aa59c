"""Jobs: rows that a worker of `default` works by slices. A lost message costs a minute, a killed worker what it had not committed."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import Error, IntegrityError, transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from config.errors import Conflict, InvalidInput, LecternError, Unavailable
from config.queues import BULK, DEFAULT, wake
from config.registry import Registry
from config.tenancy import everyone, tenant
from kb.access import Actor
from kb.models import KnowledgeBase
from retrieval.models import Evaluation, Job, RecallCheck

log = logging.getLogger(__name__)

J = TypeVar("J", bound=Job)

MOST_ATTEMPTS = 3
# The rows of each kind; what works them stands in settings.RETRIEVAL_JOBS.
KINDS: dict[str, type[Job]] = {"evaluation": Evaluation, "recall": RecallCheck}


class LeaseLost(Exception):
    """The job was cancelled, or another worker has it: nothing more is written."""


@dataclass(slots=True)
class Lease:
    """One slice of a job."""

    job: Job
    token: UUID
    until: float = field(default_factory=lambda: time.monotonic() + settings.ENV.slice_seconds)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until

    def advance(self, **values: object) -> None:
        """Write progress and renew the lease, in the caller's transaction; `LeaseLost` where it is not ours any more."""
        until = timezone.now() + timedelta(seconds=settings.ENV.lease_seconds)
        held = type(self.job).objects.filter(pk=self.job.pk, lease_token=self.token, finished_at=None)
        if not held.update(lease_until=until, attempts=0, **values):
            raise LeaseLost


def open_job(kind: type[J], actor: Actor, knowledge_base: KnowledgeBase, **values: object) -> J:
    """A new open job in the caller's transaction; `Conflict` names the one that is open already."""
    try:
        with transaction.atomic():
            return kind.objects.create(
                organization_id=knowledge_base.organization_id,
                knowledge_base=knowledge_base,
                version=knowledge_base.current.number,
                requested_by=actor.user,
                requested_name=actor.name,
                **values,
            )
    except IntegrityError:
        found = kind.objects.filter(knowledge_base=knowledge_base, finished_at=None).first()
        if found is None:
            raise
        since = f"since {found.created_at:%Y-%m-%d %H:%M} UTC"
        raise Conflict(f"One of this knowledge base is under way {since}. Wait for it, or cancel it.", id=str(found.id)) from None


def send(kind: str, job: Job) -> None:
    """Wake a worker after the commit; without a broker the housekeeping does within a minute."""

    def now() -> None:
        try:
            wake("retrieval.work", kind, str(job.pk), queue=DEFAULT, priority=BULK)
        except Unavailable as error:
            log.warning("A %s waits for the message broker: %s", kind, error)

    transaction.on_commit(now)


def work(kind: str, job_id: UUID) -> bool:
    """One slice: take the lease, work, and either close the job or wake the next slice. False when it was not to be had."""
    rows = KINDS[kind].objects
    token = uuid4()
    now = timezone.now()
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    lease_until = now + timedelta(seconds=settings.ENV.lease_seconds)
    with everyone():
        taken = rows.filter(free, pk=job_id, finished_at=None).update(
            lease_token=token,
            lease_until=lease_until,
            attempts=F("attempts") + 1,
            status=Job.Status.RUNNING,
            started_at=Coalesce("started_at", Value(now)),
        )
        job = rows.select_related("knowledge_base", "organization").filter(pk=job_id, lease_token=token).first()
    if not taken or job is None:
        return False
    with tenant(job.organization_id):
        _work(kind, Lease(job, token))
    return True


def _work(kind: str, lease: Lease) -> None:
    job = lease.job
    try:
        if job.attempts > MOST_ATTEMPTS:
            close(lease, error=job.error or f"Its worker died {MOST_ATTEMPTS} times. The log of the workers says why.")
            return
        is_done = worker_of(kind)(lease)
    except LeaseLost:
        log.info("The %s %s was cancelled or taken over; the slice ends.", kind, job.pk)
        return
    except Exception as error:
        if isinstance(error, LecternError) and not error.transient:
            close(lease, error=error.message)
            return
        # The next look at waiting jobs tries again; a database that went away has to come back first.
        with suppress(Error):
            told = error.message if isinstance(error, LecternError) else f"{type(error).__name__}; the log of the workers says where."
            put_back(lease, error=told)
        raise
    if not is_done:
        put_back(lease, attempts=0)
        send(kind, job)


def worker_of(kind: str) -> Callable[[Lease], bool]:
    """What works a slice: True when the job is closed. Raises `LeaseLost`."""
    return Registry("job", settings.RETRIEVAL_JOBS).load(kind)


def close(lease: Lease, *, error: str = "", **values: object) -> None:
    """The end of a job; `LeaseLost` if it had one already."""
    status = Job.Status.FAILED if error else Job.Status.SUCCEEDED
    lease.advance(status=status, error=error[:2000], finished_at=timezone.now(), **values)


def put_back(lease: Lease, **values: object) -> None:
    rows = type(lease.job).objects.filter(pk=lease.job.pk, lease_token=lease.token, finished_at=None)
    rows.update(lease_until=None, **values)


def cancel(job: Job) -> None:
    """End it now; what is being asked is not written any more. `InvalidInput` for one that has ended."""
    ended = {"status": Job.Status.CANCELLED, "finished_at": timezone.now(), "lease_token": None}
    if not type(job).objects.filter(pk=job.pk, finished_at=None).update(**ended):
        raise InvalidInput("This has ended already.")
    job.refresh_from_db()


def finish_here(kind: str, job: Job) -> None:
    """Work all slices in this process, for a command."""
    while type(job).objects.filter(pk=job.pk, finished_at=None).exists():
        if not work(kind, job.pk):
            time.sleep(0.2)  # a worker of the fleet took it up
    job.refresh_from_db()


def wake_waiting() -> int:
    """Wake open jobs that nobody holds: their message was lost, or their worker. How many."""
    woken = 0
    for kind, model in KINDS.items():
        lost = model.objects.filter(Q(lease_until__lt=timezone.now()) | Q(lease_until=None), finished_at=None)
        for job_id in lost.order_by("created_at").values_list("id", flat=True)[:100]:
            wake("retrieval.work", kind, str(job_id), queue=DEFAULT, priority=BULK)
            woken += 1
    return woken
