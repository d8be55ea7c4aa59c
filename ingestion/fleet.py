"""Which workers are there: heartbeat rows from a thread of each worker, and an end-to-end proof of every queue."""

import logging
import os
import threading
from collections import Counter
from datetime import datetime, timedelta

import psutil
from django.db import Error, close_old_connections
from django.utils import timezone

from config import queues
from ingestion.models import QueueBeat, WorkerHeartbeat

log = logging.getLogger(__name__)

BEAT_SECONDS = 5.0
ALIVE_FOR = timedelta(seconds=20)


def slots() -> Counter[str]:
    """Queue name to the number of tasks that living workers can work at once."""
    found: Counter[str] = Counter()
    for row in WorkerHeartbeat.objects.filter(seen_at__gt=timezone.now() - ALIVE_FOR):
        for queue in row.queues:
            found[queue] += row.concurrency
    return found


def queues_without_worker() -> list[str]:
    have = slots()
    return [queue for queue in queues.QUEUES if not have[queue]]


def known_queues() -> tuple[str, ...]:
    return queues.QUEUES


def queues_without_proof(age: timedelta, *, now: datetime) -> list[str]:
    """Queues through which a proof was sent and did not come out for so long. None before the beat's first round."""
    return [
        row.queue for row in QueueBeat.objects.filter(first_sent_at__lt=now - age) if row.received_at is None or row.received_at < now - age
    ]


class Heart:
    """A thread that writes this worker's row until it is stopped. It also tells the memory that the worker has taken."""

    def __init__(self, name: str, consumed: list[str], concurrency: int) -> None:
        self.name, self.queues, self.concurrency = name, consumed, concurrency
        self._started_at = timezone.now()
        self._stopped = threading.Event()
        self._peak = 0
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and take the row away, so that a stopped worker is not counted for twenty seconds."""
        self._stopped.set()
        try:
            WorkerHeartbeat.objects.filter(name=self.name).delete()
        except Error:
            log.debug("The heartbeat row could not be removed; it grows old by itself.")

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.beat()
            except Error as error:
                log.warning("The heartbeat could not be written: %s", error)
                close_old_connections()
            self._stopped.wait(BEAT_SECONDS)

    def beat(self) -> None:
        rss = _memory(psutil.Process())
        self._peak = max(self._peak, rss)
        WorkerHeartbeat.objects.update_or_create(
            name=self.name,
            defaults={
                "queues": self.queues,
                "concurrency": self.concurrency,
                "pid": os.getpid(),
                "rss_bytes": rss,
                "peak_rss_bytes": self._peak,
                "started_at": self._started_at,
                "seen_at": timezone.now(),
            },
        )


def _memory(process: psutil.Process) -> int:
    """Bytes of the process and its children."""
    total = process.memory_info().rss
    for child in process.children(recursive=True):
        try:
            total += child.memory_info().rss
        except psutil.Error:
            continue
    return total


def send_proofs() -> None:
    """Send one message through every queue; its row says when it came out at the other end."""
    for queue in queues.QUEUES:
        QueueBeat.objects.update_or_create(queue=queue, defaults={"sent_at": timezone.now()})
        queues.wake("ingestion.prove_queue", queue, queue=queue, expires=60)


def record_proof(queue: str) -> None:
    QueueBeat.objects.filter(queue=queue).update(received_at=timezone.now())
