"""Queues, how Celery is set up, and `wake`: the only way to send a task. Messages carry no work, so each may be lost."""

import time
from contextlib import suppress
from typing import Any

from kombu import Exchange, Queue
from kombu.exceptions import KombuError
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from config.errors import Unavailable

CRAWL = "crawl"
EXTRACT = "extract"
RECOGNIZE = "recognize"
EMBED = "embed"
DEFAULT = "default"
QUEUES = (CRAWL, EXTRACT, RECOGNIZE, EMBED, DEFAULT)

# Redis serves the list of the lowest number first.
INTERACTIVE = 0
NORMAL = 3
BULK = 6

MESSAGE_EXPIRY = 600
VISIBILITY_TIMEOUT = 3600


def kombu_queues() -> tuple[Queue, ...]:
    return tuple(Queue(name, Exchange(name, type="direct"), routing_key=name) for name in QUEUES)


def celery_settings(redis_url: str) -> dict[str, Any]:
    """Acknowledged early, because `sweep` and leases repeat what a dead worker held; no results, because rows are the results."""
    return {
        "broker_url": _broker_url(redis_url),
        "broker_connection_retry_on_startup": True,
        # None is for ever: a worker outlives any outage of the broker.
        "broker_connection_max_retries": None,
        "broker_connection_timeout": 2,
        "broker_pool_limit": 10,
        "broker_transport_options": {
            # Longer than any task: a message that comes back while its task runs would double the work.
            "visibility_timeout": VISIBILITY_TIMEOUT,
            "priority_steps": [INTERACTIVE, NORMAL, BULK],
            "socket_connect_timeout": 1.0,
            # Longer than kombu's blocking read (1 s), short enough for a request that publishes.
            "socket_timeout": 3.0,
            "socket_keepalive": True,
            "health_check_interval": 15,
            "max_retries": 1,
            "interval_start": 0.1,
            "interval_step": 0.1,
            "interval_max": 0.2,
        },
        # Publishing fails soon when there is no broker: the rows are written, `sweep` wakes them later.
        "task_publish_retry": True,
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0.1, "interval_step": 0.1, "interval_max": 0.2},
        "result_backend": None,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_queues": kombu_queues(),
        "task_default_queue": DEFAULT,
        "task_default_exchange": DEFAULT,
        "task_default_routing_key": DEFAULT,
        "task_default_priority": NORMAL,
        "task_create_missing_queues": False,
        "task_acks_late": False,
        "task_track_started": False,
        "worker_prefetch_multiplier": 1,
        "worker_max_tasks_per_child": 500,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "enable_utc": True,
        "timezone": "UTC",
        "beat_scheduler": "django_celery_beat.schedulers:DatabaseScheduler",
    }


def wake(task: str, *ids: str | int, queue: str, priority: int = NORMAL, expires: float = MESSAGE_EXPIRY) -> None:
    """Sends a task by name. Only ids travel (TypeError otherwise); without a broker it is Unavailable within two seconds, with one
    that hangs after `socket_timeout`.

    Inside a transaction, call it from `on_commit`: a worker is quicker than a commit."""
    wrong = [type(value).__name__ for value in ids if isinstance(value, bool) or not isinstance(value, (str, int))]
    if wrong:
        raise TypeError(f"{task} takes ids (str or int), not {', '.join(wrong)}: a message carries no work")
    if queue not in QUEUES:
        raise ValueError(f"there is no queue {queue!r}; queues are {', '.join(QUEUES)}")
    # The application needs Django's settings, which need this module.
    from config.celery import app

    for last in (False, True):
        started = time.monotonic()
        try:
            app.send_task(task, args=list(ids), queue=queue, priority=priority, expires=expires, ignore_result=True, retry=False)
            return
        except (BrokerError, KombuError, RedisError, OSError) as error:
            # A second try is for a pooled connection that went stale; a broker that hangs has had its time.
            if last or time.monotonic() - started > 0.5:
                raise Unavailable(
                    "The message broker (Redis or Valkey) cannot be reached. Check that it is up and that REDIS_URL is right; "
                    "what was stored is picked up when it is back."
                ) from error


def nudge(task: str, *ids: str | int) -> None:
    """Send what a periodic look would find as well; without a broker it is left to that."""
    with suppress(Unavailable):
        wake(task, *ids, queue=DEFAULT)


def _broker_url(url: str) -> str:
    """Kombu spells a socket in its own way."""
    return url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url
