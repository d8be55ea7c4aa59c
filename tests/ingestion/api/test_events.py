"""Live progress as server-sent events, over the ASGI handler."""

import asyncio
import json
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])
NOTE = b"# Leave\n\nEvery employee has thirty days of leave a year.\n"


def parsed(body: bytes) -> list[dict]:
    events = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "event" in fields:
            events.append({"event": fields["event"], "id": fields["id"], "data": json.loads(fields["data"])})
    return events


async def aside(function, *args, **values):
    """In a thread of its own, which leaves no connection behind."""

    def call():
        try:
            return function(*args, **values)
        finally:
            connections.close_all()

    return await sync_to_async(call, thread_sensitive=False)()


def test_a_closed_run_is_told_once(viewer, upload, run_now, async_get):
    upload(("a.md", NOTE))
    run = run_now()
    answer, body = async_get(f"/api/v1/runs/{run.id}/events", viewer, accept="text/event-stream")
    assert (answer.status_code, answer["Content-Type"], answer["Cache-Control"]) == (200, "text/event-stream", "no-store")
    (event,) = parsed(body)
    assert (event["event"], event["data"]["status"]) == ("run.finished", "succeeded")
    assert event["data"]["counters"]["ingested"] == 1
    again, body = async_get(f"/api/v1/runs/{run.id}/events", viewer, accept="text/event-stream", last_event_id=event["id"])
    assert (again.status_code, body) == (204, b"")


def test_progress_is_told_until_the_end(viewer, editor, source_url, upload, work, async_get, monkeypatch):
    from ingestion.api import events, watching

    monkeypatch.setattr(events, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(watching, "COST_SHARE", 0)
    upload(("a.md", NOTE))
    run_id = editor.post(f"{source_url}/run").json()["run_id"]

    async def meanwhile() -> None:
        for until in ("extract", "embed", None):
            await asyncio.sleep(0.4)
            await aside(work, run_id, until)

    _, body = async_get(f"/api/v1/runs/{run_id}/events", viewer, accept="text/event-stream", meanwhile=meanwhile)
    told = parsed(body)
    assert told[0]["data"]["status"] == "queued"
    assert told[0]["data"]["waiting_for"] == "no worker on queue crawl"
    assert "running" in [event["data"]["status"] for event in told]
    assert [event["event"] for event in told].count("run.finished") == 1
    assert (told[-1]["event"], told[-1]["data"]["status"]) == ("run.finished", "succeeded")
    assert len({event["id"] for event in told}) == len(told)


def test_no_connection_is_held_between_looks(viewer, editor, source_url, async_get, monkeypatch):
    from ingestion.api import events

    monkeypatch.setattr(events, "LOOK_SECONDS", 0.3)
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    counts: list[int] = []

    def count() -> int:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
            return cursor.fetchone()[0]

    async def meanwhile() -> None:
        for _ in range(6):
            await asyncio.sleep(0.13)
            counts.append(await aside(count))
        await aside(editor.post, f"/api/v1/runs/{run_id}/cancel")

    connections.close_all()
    _, body = async_get(f"/api/v1/runs/{run_id}/events", viewer, accept="text/event-stream", meanwhile=meanwhile)
    assert parsed(body)[-1]["data"]["status"] == "cancelled"
    assert min(counts) == 0


def test_a_watcher_who_loses_sight_is_let_go(viewer, editor, knowledge_base, source_url, async_get, monkeypatch):
    from ingestion.api import events, watching
    from kb.models import KnowledgeBase

    monkeypatch.setattr(events, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(watching, "COST_SHARE", 0)
    run_id = editor.post(f"{source_url}/run").json()["run_id"]

    async def meanwhile() -> None:
        await asyncio.sleep(0.3)
        await aside(KnowledgeBase.objects.filter(id=knowledge_base.id).update, state="deleting")

    _, body = async_get(f"/api/v1/runs/{run_id}/events", viewer, accept="text/event-stream", meanwhile=meanwhile)
    assert [event["event"] for event in parsed(body)] == ["run.progress"]


@pytest.mark.parametrize("end", ["revoked_at", "expires_at"])
def test_a_stream_ends_with_the_key_that_opened_it(viewer, editor, source_url, async_get, monkeypatch, end):
    from django.utils import timezone

    from ingestion.api import events, watching
    from kb.models import ApiKey

    monkeypatch.setattr(events, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(watching, "COST_SHARE", 0)
    monkeypatch.setattr(events, "RENEW_SECONDS", 0.2)
    run_id = editor.post(f"{source_url}/run").json()["run_id"]

    async def meanwhile() -> None:
        await asyncio.sleep(0.4)
        await aside(ApiKey.objects.filter(name="key of bob").update, **{end: timezone.now()})

    _, body = async_get(f"/api/v1/runs/{run_id}/events", viewer, accept="text/event-stream", meanwhile=meanwhile)
    assert [event["event"] for event in parsed(body)] == ["run.progress"]


def test_a_stream_ends_without_a_word_when_the_database_goes(viewer, editor, source_url, async_get, monkeypatch):
    from ingestion.api import events

    monkeypatch.setattr(events, "LOOK_SECONDS", 0.2)
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    port = connections["default"].settings_dict["PORT"]

    async def meanwhile() -> None:
        await asyncio.sleep(0.3)
        connections["default"].settings_dict["PORT"] = "1"

    try:
        _, body = async_get(f"/api/v1/runs/{run_id}/events", viewer, accept="text/event-stream", meanwhile=meanwhile)
    finally:
        connections["default"].settings_dict["PORT"] = port
    assert [event["event"] for event in parsed(body)] == ["run.progress"]


def test_errors_are_problems(viewer, stranger, editor, source_url, async_get):
    run_id = editor.post(f"{source_url}/run").json()["run_id"]
    for url, client, status in (
        (f"/api/v1/runs/{run_id}/events", stranger, 404),
        (f"/api/v1/runs/{uuid4()}/events", viewer, 404),
        (f"/api/v1/runs/{run_id}/events", None, 401),
    ):
        answer, body = async_get(url, client, accept="text/event-stream")
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
        assert json.loads(body)["status"] == status
