"""Messages that wake workers. They carry no work: a lost one costs at most a lease, a surplus one returns at once.

What is under way stands in one Redis set per stage and run, beside the queue itself: a flushed Redis forgets both together.
How many messages a run may have under way is its fair share of the stage's slots. Which of them are being worked, and do not
merely wait in line, stands in one set per queue.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
    "recognize": Route(queues.RECOGNIZE, rows=8, most=64),
    "embed": Route(queues.EMBED, rows=1, most=64),
    "publish": Route(queues.DEFAULT, rows=16, most=4),
    "refill": Route(queues.EMBED, rows=1, most=1),  # of a change of model, whose id takes the place of a run's
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


def _under_way_key(stage: str, run_id: object) -> str:
    return f"lectern:wakes:{stage}:{run_id}"


def _called_key(stage: str, run_id: object) -> str:
    return f"lectern:called:{stage}:{run_id}"


def _worked_key(queue: str) -> str:
    return f"lectern:slices:{queue}"


def _run_of(token: str) -> str:
    return token.partition(":")[0]


def _note(key: str, token: str) -> None:
    """The token stands in the set for one lease from now; the set goes with its last token."""
    lease = settings.ENV.lease_seconds
    with redis_client().pipeline(transaction=False) as pipe:
        pipe.zadd(key, {token: time.time() + lease})
        pipe.expire(key, math.ceil(2 * lease))
        pipe.execute()


@contextmanager
def alone(what: str) -> Iterator[bool]:
    """Whether nobody else is at it; also true when Redis does not answer, because what is done so is safe to do twice."""
    key, token = f"lectern:alone:{what}", uuid4().hex.encode()
    try:
        first = bool(redis_client().set(key, token, nx=True, ex=math.ceil(settings.ENV.lease_seconds / 4)))
    except RedisError:
        first = True
    try:
        yield first
    finally:
        with suppress(RedisError):
            if first and redis_client().get(key) == token:
                redis_client().delete(key)


def looked_lately(what: str, *, seconds: float) -> bool:
    """Whether this was asked within the last `seconds`; asking counts as looking. False after a flush: nobody remembers."""
    return redis_client().set(f"lectern:looked:{what}", b"1", ex=math.ceil(seconds), get=True) is not None


def under_way(stage: str, run_id: UUID) -> int:
    """How many messages or slices of the run are under way in a stage."""
    return redis_client().zcount(_under_way_key(stage, run_id), time.time(), "+inf")


def being_worked(queue: str) -> Counter[UUID]:
    """How many slices of each run are being worked on a queue."""
    client = redis_client()
    client.zremrangebyscore(_worked_key(queue), "-inf", time.time())
    return Counter(UUID(_run_of(member.decode())) for member in client.zrange(_worked_key(queue), 0, -1))


def wake(run_id: UUID, stage: str, *, rows: int = 1, share: int = 1, interactive: bool = False) -> int:
    """Send as many messages as the run's rows and share ask for beyond those under way; returns how many.

    A broker out of reach is not an error here: the rows wait, and the sweep wakes them when it is back.
    """
    route = ROUTES[stage]
    try:
        if route.most == 1:
            redis_client().set(_called_key(stage, run_id), b"1", ex=math.ceil(settings.ENV.lease_seconds))
        missing = min(share, route.most, math.ceil(rows / route.rows)) - under_way(stage, run_id)
        for _ in range(missing):
            token = f"{run_id}:{uuid4().hex}"
            _note(_under_way_key(stage, run_id), token)
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


def was_called(stage: str, run_id: UUID) -> bool:
    """Whether the stage, which is worked by one at a time, was to be woken since this was asked last. Ask before a slice looks, and when
    it is signed off: who came in between was refused, because the slice was under way, and may have come after its last look."""
    try:
        return redis_client().getdel(_called_key(stage, run_id)) is not None
    except RedisError:
        return False


def hold(stage: str, token: str) -> None:
    """Say that the slice of a message is being worked; also its heartbeat."""
    try:
        _note(_under_way_key(stage, _run_of(token)), token)
        _note(_worked_key(ROUTES[stage].queue), token)
    except RedisError:
        log.debug("The slice %s could not be announced.", token)


def release(stage: str, token: str) -> None:
    try:
        redis_client().zrem(_under_way_key(stage, _run_of(token)), token)
        redis_client().zrem(_worked_key(ROUTES[stage].queue), token)
    except RedisError:
        log.debug("The slice %s could not be signed off; it expires by itself.", token)
