"""A time that passed while the clock was down is made good once, by a real beat, or by two of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import redis

from tests.client import Client
from tests.fleet import Fleet, look_past_rules, wait_for

pytestmark = [pytest.mark.journey, pytest.mark.soak]


@pytest.fixture
def second_beat(fleet: Fleet, tmp_path) -> Iterator[Fleet]:
    """Another clock of the same installation, started by mistake."""
    other = Fleet(fleet.environment, tmp_path, fleet.port)
    yield other
    other.stop()


def test_a_missed_time_runs_once_with_two_beats(client: Client, fleet: Fleet, second_beat: Fleet):
    missed = (datetime.now(UTC) - timedelta(minutes=3)).replace(second=0, microsecond=0)
    entry = {"name": "files", "type": "upload", "cron": f"{missed.minute} {missed.hour} * * *"}
    kb, source = client.create_knowledge_base(f"schedules {uuid4().hex[:8]}", sources=[entry])
    client.upload(kb, source, {"fox.md": b"# Foxes\n\nThe quick brown fox jumps over the lazy dog."})
    path = f"/knowledge-bases/{kb}/sources/{source}"
    state = client.call("GET", path)
    assert (datetime.fromisoformat(state["next_run_at"]), state["last_fire"]) == (missed + timedelta(days=1), None)

    fleet.kill("beat")
    with redis.Redis.from_url(fleet.environment["REDIS_URL"]) as broker:
        broker.flushdb()
    with look_past_rules(fleet.environment) as rows:  # the schedule stood since before the missed minute
        rows.execute("UPDATE ingestion_sourceschedule SET due_at = %s WHERE source_id = %s", [missed, source])
        rows.execute(
            "UPDATE django_celery_beat_periodictask SET last_run_at = now() - interval '2 days' WHERE name = %s",
            [f"lectern:source:{state['id']}"],
        )
    fleet.start("beat")
    second_beat.start("beat")

    fire = wait_for(lambda: client.call("GET", path)["last_fire"], seconds=60, what="the fire")
    assert (datetime.fromisoformat(fire["due_at"]), fire["outcome"]) == (missed, "started")
    run = client.finish(fire["run_id"])
    assert (run["trigger"], run["started_by"], run["status"], run["counters"]["ingested"]) == ("schedule", None, "succeeded", 1)
    sent = f"Sending due task lectern:source:{state['id']}"
    for beat in (fleet, second_beat):  # both woke the fleet for it
        wait_for(lambda beat=beat: sent in beat.tail("beat", 1000), seconds=30, what="the message of each beat")
    wait_for(lambda: fleet.tail("main", 2000).count("Task ingestion.sweep") > 3, seconds=30, what="more sweeps")
    assert len(client.call("GET", f"{path}/fires")["items"]) == 1
    assert len(client.call("GET", f"{path}/runs")["items"]) == 1
    assert datetime.fromisoformat(client.call("GET", path)["next_run_at"]) == missed + timedelta(days=1)
