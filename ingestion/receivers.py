"""What the ingestion hears: a version was published, a worker came or went."""

from functools import partial
from threading import Thread

from celery.signals import worker_ready, worker_shutdown
from django.db import transaction
from django.dispatch import receiver

from config import queues
from config.errors import Conflict
from ingestion import claims, wakes
from ingestion.children import sandbox
from ingestion.fleet import Heart
from ingestion.models import IngestionRun
from ingestion.refill import refilling
from ingestion.removal import hand_over
from ingestion.schedules import sync_schedules
from kb.models import KnowledgeBaseVersion
from kb.schemas import load_stored
from kb.signals import version_published
from kb.space_changes import open_change

_hearts: list[Heart] = []


@receiver(version_published)
def follow_sources(sender, *, version, previous, removed_sources, retyped_sources, **kwargs) -> None:
    """A run that lost its source stops at its next write or call; the housekeeping clears what the source had. Schedules follow last."""
    left = [*removed_sources, *retyped_sources]
    for run in IngestionRun.objects.filter(source__in=left, finished_at=None):
        claims.cancel(run, why="Its source was removed" if run.source in removed_sources else "Its source got another type")
    for kept, heir in retyped_sources.items():
        hand_over(kept, heir)
    _refuse_moving(version, previous)
    sync_schedules(version)
    if left:
        transaction.on_commit(partial(queues.nudge, "ingestion.housekeep"))


def _refuse_moving(version: KnowledgeBaseVersion, previous: KnowledgeBaseVersion | None) -> None:
    """A run writes into the store of its time: none may be under way while a knowledge base gets another one."""
    if previous is None or load_stored(previous.document).store.identity == load_stored(version.document).store.identity:
        return
    if IngestionRun.objects.filter(knowledge_base=version.knowledge_base_id, finished_at=None).exists():
        raise Conflict("A run is under way, and it writes into the store that this knowledge base has. Wait for it, or cancel it.")


@receiver(version_published)
def follow_model(sender, *, knowledge_base, **kwargs) -> None:
    """A version that names another model began a change; the sweep finds it too."""
    if (change := open_change(knowledge_base)) is not None:
        transaction.on_commit(partial(wakes.wake, change.id, refilling.STAGE))


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
