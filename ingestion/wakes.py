"""Messages that wake workers. They carry no work: a lost one costs at most a lease, a surplus one returns at once.

What is under way stands in one Redis set per stage, beside the queue itself: a flushed Redis forgets both together.
How many messages a run may have under way is its fair share of the stage's slots.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID, uuid4

from django.conf import settings
from redis.exceptions import RedisError

from config import queues
from config.errors import Unavailable
from config.redis import redis_client

log = logging.getLogger(__name__)

STAGE_TASK = "ingestion.work"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a stage runs. `rows` is how many items one slice takes on, so that ten rows do not wake ten workers."""

    queue: str
    rows: int
    most: int


ROUTES: Mapping[str, Route] = {
    "crawl": Route(queues.CRAWL, rows=1, most=1),
    "extract": Route(queues.EXTRACT, rows=4, most=64),
    "embed": Route(queues.EMBED, rows=1, most=64),
    "publish": Route(queues.DEFAULT, rows=16, most=4),
    "finish": Route(queues.DEFAULT, rows=1, most=1),
}


def fair_shares(slots: int, runs: Mapping[UUID, list[UUID]]) -> dict[UUID, int]:
    """Slots for each run: organizations first, then their runs in turn. At least one each, so that nobody starves.

    `runs` maps an organization to its runs that could work, oldest first.
    """
    shares: dict[UUID, int] = {}
    for members in runs.values():
        share = max(1, slots // max(1, len(runs)))
        for position, run in enumerate(members):
            shares[run] = max(1, share // len(members) + (1 if position < share % len(members) else 0))
    return shares


def _set(stage: str) -> str:
    return f"lectern:wakes:{stage}"


def under_way(stage: str) -> Counter[UUID]:
    """How many messages or slices of each run are under way in a stage."""
    client = redis_client()
    client.zremrangebyscore(_set(stage), "-inf", time.time())
    return Counter(UUID(member.decode().partition(":")[0]) for member in client.zrange(_set(stage), 0, -1))


def wake(run_id: UUID, stage: str, *, rows: int = 1, share: int = 1, interactive: bool = False) -> int:
    """Send as many messages as the run's rows and share ask for beyond those under way; returns how many.

    A broker out of reach is not an error here: the rows wait, and the sweep wakes them when it is back.
    """
    route = ROUTES[stage]
    try:
        missing = min(share, route.most, math.ceil(rows / route.rows)) - under_way(stage)[run_id]
        for _ in range(missing):
            token = f"{run_id}:{uuid4().hex}"
            redis_client().zadd(_set(stage), {token: time.time() + settings.ENV.lease_seconds})
            queues.wake(
                STAGE_TASK,
                stage,
                str(run_id),
                token,
                queue=route.queue,
                priority=queues.INTERACTIVE if interactive else queues.BULK,
                expires=settings.ENV.lease_seconds,
            )
        return max(0, missing)
    except (RedisError, Unavailable) as error:
        log.warning("Run %s waits for the message broker: %s", run_id, error)
        return 0


def hold(stage: str, token: str) -> None:
    """Say that the slice of a message is being worked; also its heartbeat."""
    try:
        redis_client().zadd(_set(stage), {token: time.time() + settings.ENV.lease_seconds})
    except RedisError:
        log.debug("The slice %s could not be announced.", token)


def release(stage: str, token: str) -> None:
    try:
        redis_client().zrem(_set(stage), token)
    except RedisError:
        log.debug("The slice %s could not be signed off; it expires by itself.", token)
