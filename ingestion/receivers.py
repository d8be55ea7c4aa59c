"""What the ingestion hears: a version was published, a worker came or went."""

from functools import partial
from threading import Thread

from celery.signals import worker_ready, worker_shutdown
from django.db import transaction
from django.dispatch import receiver

from config import queues
from config.errors import Unavailable
from ingestion import claims
from ingestion.children import sandbox
from ingestion.fleet import Heart
from ingestion.models import IngestionRun
from kb.signals import version_published

_hearts: list[Heart] = []


@receiver(version_published)
def end_runs_of_removed_sources(sender, *, removed_sources, **kwargs) -> None:
    """A run that lost its source stops at its next write; the housekeeping clears what the source had."""
    for run in IngestionRun.objects.filter(source__in=removed_sources, finished_at=None):
        claims.cancel(run, why="Its source was removed")
    if removed_sources:
        transaction.on_commit(partial(_wake_quietly, "ingestion.housekeep"))


def _wake_quietly(task: str) -> None:
    try:
        queues.wake(task, queue=queues.DEFAULT)
    except Unavailable:
        return  # the next housekeeping finds the same rows


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
