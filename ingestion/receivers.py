"""What the ingestion hears: a version was published, a worker came or went."""

from functools import partial
from threading import Thread

from celery.signals import worker_ready, worker_shutdown
from django.db import transaction
from django.dispatch import receiver

from config import queues
from ingestion import claims
from ingestion.children import sandbox
from ingestion.fleet import Heart
from ingestion.models import IngestionRun
from ingestion.removal import hand_over
from ingestion.schedules import sync_schedules
from kb.signals import version_published

_hearts: list[Heart] = []


@receiver(version_published)
def follow_sources(sender, *, version, removed_sources, retyped_sources, **kwargs) -> None:
    """A run that lost its source stops at its next write or call; the housekeeping clears what the source had. Schedules follow last."""
    left = [*removed_sources, *retyped_sources]
    for run in IngestionRun.objects.filter(source__in=left, finished_at=None):
        claims.cancel(run, why="Its source was removed" if run.source in removed_sources else "Its source got another type")
    for kept, heir in retyped_sources.items():
        hand_over(kept, heir)
    sync_schedules(version)
    if left:
        transaction.on_commit(partial(queues.nudge, "ingestion.housekeep"))


@worker_ready.connect
def start_heart(sender, **kwargs) -> None:
    heart = Heart(sender.hostname, sorted(queue.name for queue in sender.task_consumer.queues), sender.controller.concurrency or 1)
    heart.start()
    _hearts.append(heart)
    if queues.EXTRACT in heart.queues:
        Thread(target=sandbox().warm, name="warm-children", daemon=True).start()


@worker_shutdown.connect
def stop_heart(sender, **kwargs) -> None:
    while _hearts:
        _hearts.pop().stop()
