"""Wake-ups. A task names a run and works a slice of it; every one may be lost or come twice."""

from uuid import UUID

from celery import shared_task

from ingestion import fires, fleet, housekeeping, sweeping
from ingestion.refill import refilling
from ingestion.stages import slices
from kb.models import EmbeddingSpace
from kb.stores.provision import provision_space


@shared_task(name="ingestion.work")
def work(stage: str, run_id: str, token: str) -> None:
    """A slice of a run's stage; of a change of model for `refill`."""
    slices.work(stage, UUID(run_id), token) if stage != refilling.STAGE else refilling.work(UUID(run_id), token)


@shared_task(name="ingestion.sweep", everyone=True, expires=30)
def sweep() -> None:
    """Every few seconds: wake what lost its message, reap what is dead."""
    sweeping.sweep()


@shared_task(name="ingestion.fire_schedule", everyone=True)
def fire_schedule(source_id: str) -> None:
    """At the minute of a source's schedule. Whether it is due is decided by its row, so anybody may send this at any time."""
    fires.fire(UUID(source_id))


@shared_task(name="ingestion.housekeep", everyone=True, expires=300)
def housekeep() -> None:
    """Every minute: clear what was removed, fold statistics, collect what nobody uses."""
    housekeeping.housekeep()


@shared_task(name="ingestion.provision", everyone=True)
def provision(space_id: int) -> None:
    """Make the partition of a space; never in a request."""
    provision_space(EmbeddingSpace.objects.get(id=space_id))


@shared_task(name="ingestion.prove_queue")
def prove_queue(queue: str) -> None:
    """The end-to-end heartbeat: beat sent it, a worker of the queue answers in a row."""
    fleet.record_proof(queue)


@shared_task(name="ingestion.send_proofs", everyone=True, expires=30)
def send_proofs() -> None:
    fleet.send_proofs()
