"""`/healthz`: this process answers. `/readyz`: the parts that it needs answer too, and every queue has a worker that works."""

from datetime import timedelta

from django.db import Error
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from psycopg_pool import PoolTimeout
from redis.exceptions import RedisError

from config.database import answers_within
from config.redis import redis_client
from ingestion import fleet

PROOF_AGE = timedelta(seconds=90)
ANSWER_SECONDS = 2.0


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when everything is there, else 503; each part says what is wrong and what to do."""
    parts = {**_database(), "broker": _broker()}
    ready = all(state == "ok" for state in parts.values())
    return JsonResponse({"status": "ready" if ready else "not_ready", **parts}, status=200 if ready else 503)


def _database() -> dict[str, str]:
    """The database, and what its rows say of the queues."""
    try:
        with answers_within(ANSWER_SECONDS):
            return {"database": "ok", **_queues()}
    except (Error, PoolTimeout) as error:
        reason = str(error).strip().partition("\n")[0][:200]
        return {"database": f"Postgres does not answer ({reason}). Check that it is up and DATABASE_URL is right."}


def _broker() -> str:
    try:
        redis_client().ping()
    except RedisError as error:
        return f"Redis does not answer ({type(error).__name__}). Check that it is up and REDIS_URL is right."
    return "ok"


def _queues() -> dict[str, str]:
    """A queue is ready when a worker consumes it, and no proof sent through it is overdue."""
    orphaned = fleet.queues_without_worker()
    late = fleet.queues_without_proof(PROOF_AGE, now=timezone.now())
    states = dict.fromkeys(fleet.known_queues(), "ok")
    states |= dict.fromkeys(late, "Messages go in and do not come out. Look at the workers of this queue.")
    states |= {queue: f"No worker consumes it. Start one: python -m config.roles worker --queues {queue}" for queue in orphaned}
    return {f"queue:{queue}": state for queue, state in states.items()}


urlpatterns = [path("healthz", healthz, name="healthz"), path("readyz", readyz, name="readyz")]
