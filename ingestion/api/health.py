"""`/healthz`: this process answers. `/readyz`: the parts that it needs answer too, and every queue has a worker that works."""

from datetime import timedelta

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from redis.exceptions import RedisError

from config.redis import redis_client
from ingestion import fleet

PROOF_AGE = timedelta(seconds=90)


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when everything is there, else 503; each part says what is wrong and what to do."""
    parts = {"database": _database(), "broker": _broker()}
    if parts["database"] == "ok":
        parts |= _queues()
    ready = all(state == "ok" for state in parts.values())
    return JsonResponse({"status": "ready" if ready else "not_ready", **parts}, status=200 if ready else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return f"Postgres does not answer ({str(error).strip().splitlines()[0][:200]}). Check that it is up and DATABASE_URL is right."
    return "ok"


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
