"""Live progress of a run as server-sent events: a snapshot on connecting, then whatever changed, until the run is closed."""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import Error, connection
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from psycopg_pool import PoolTimeout
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from config.errors import Forbidden, NotAuthenticated, NotFound
from config.openapi import header
from config.tenancy import tenant
from ingestion.api.runs import run_detail
from ingestion.api.watching import Watching
from ingestion.models import IngestionRun
from ingestion.services import runs
from kb import access
from kb.access import Actor
from kb.models import Source

log = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_SECONDS = 1.0
RENEW_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 15.0
RETRY_MILLISECONDS = 3000
# What moves while nothing happens; it is told with the next change, or as a sign of life.
_RESTLESS = ("progressed_at", "progress")


class EventStream(JSONRenderer):
    """Makes `Accept: text/event-stream` acceptable. Events are streamed by the view; what comes here are errors, which are JSON."""

    media_type = "text/event-stream"
    format = "events"


@dataclass(frozen=True, slots=True)
class Look:
    """A run as it stood; `id` is the same as long as nothing changed."""

    id: str
    data: str
    finished: bool

    @property
    def event(self) -> bytes:
        name = "run.finished" if self.finished else "run.progress"
        return f"id: {self.id}\nevent: {name}\ndata: {self.data}\n\n".encode()


class RunEventsView(APIView):
    renderer_classes = [EventStream, JSONRenderer]

    @extend_schema(
        operation_id="watch_run",
        responses={(200, "text/event-stream"): OpenApiTypes.STR},
        parameters=[header("Last-Event-ID", "Of the last event that was seen: what did not change since is not told again.")],
        tags=["runs"],
    )
    def get(self, request: Request, run_id: str) -> HttpResponseBase:
        """Events `run.progress` and one `run.finished`, each with the run as GET /runs/{id} gives it. 204 if the end was seen already."""
        seen = request.headers.get("Last-Event-ID", "")
        first = look(request.user, access.parse_id(run_id))
        if first.finished and first.id == seen:
            return HttpResponse(status=204)  # tells a browser not to come again
        events = run_events(request.user, access.parse_id(run_id), seen)
        response = StreamingHttpResponse(events, content_type="text/event-stream")
        response["Cache-Control"] = "no-store"
        response["X-Accel-Buffering"] = "no"
        _give_back_connection()
        return response


async def run_events(actor: Actor, run_id: UUID, seen: str) -> AsyncIterator[bytes]:
    """No database connection is held between two looks. Each of them checks what the actor may see, and every few who the actor is:
    a stream ends with the key, account or membership that opened it. A database that is away ends it too; the reader comes again."""
    yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    told = renewed = time.monotonic()
    said = ""
    while True:
        try:
            if time.monotonic() - renewed >= RENEW_SECONDS:
                renewed = time.monotonic()
                actor = await sync_to_async(_and_give_back)(access.renewed, actor)
            now = await sync_to_async(_and_give_back)(look, actor, run_id)
        except (NotFound, NotAuthenticated, Forbidden):
            return
        except (Error, PoolTimeout) as error:
            log.warning("A stream of run %s ends because the database does not answer: %s", run_id, error)
            return
        quiet = time.monotonic() - told >= KEEP_ALIVE_SECONDS
        if now.id != seen or (quiet and now.data != said):
            seen, said, told = now.id, now.data, time.monotonic()
            yield now.event
        elif quiet:
            told = time.monotonic()
            yield b": still there\n\n"
        if now.finished:
            return
        await asyncio.sleep(LOOK_SECONDS)


_watching: Watching[Look] = Watching()


def look(actor: Actor, run_id: UUID) -> Look:
    """What the actor may see is looked at each time; what is seen of an open run is shared by all who watch it, but of a channel's, whose
    numbers are of what each may see."""
    with tenant(actor.organization.id):  # the request is over when its stream looks
        run = runs.get_run(actor, run_id)
        if not run.is_open or run.source.kind == Source.Kind.CHANNEL:
            return _look(run, actor)
        return _watching.seen_of(run_id, lambda: _look(run, actor), kept=0.9 * LOOK_SECONDS)


def _look(run: IngestionRun, actor: Actor) -> Look:
    document = run_detail(run, actor=actor).model_dump(mode="json")
    steady = {key: value for key, value in document.items() if key not in _RESTLESS}
    digest = hashlib.sha256(json.dumps(steady, sort_keys=True).encode()).hexdigest()[:16]
    return Look(digest, json.dumps(document, ensure_ascii=False), finished=not run.is_open)


def _and_give_back(ask: Callable[..., T], *arguments: object) -> T:
    try:
        return ask(*arguments)
    finally:
        _give_back_connection()


def _give_back_connection() -> None:
    if not connection.in_atomic_block:
        connection.close()
