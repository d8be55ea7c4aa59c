"""Workers die by `kill -9` inside `publish` and `finish`, held there by the database until they are dead: nothing is lost or doubled."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.client import Client
from tests.fleet import Fleet, look_past_rules, wait_for
from tests.journeys.whole import check_whole, files

pytestmark = pytest.mark.journey


@dataclass(frozen=True)
class Point:
    """Where a worker stands when it dies: before a write of which `when` is true, inside its transaction. `lock` is a number of its own."""

    lock: int
    table: str
    event: str
    when: str


PUBLISHING = Point(4711, "kb_document", "UPDATE", "NEW.generation > OLD.generation")
CLOSING = Point(4712, "ingestion_ingestionrun", "UPDATE", "OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL")
FOLLOWING = Point(4713, "ingestion_ingestionrun", "INSERT", "NEW.trigger = 'change'")


@contextmanager
def held(fleet: Fleet, point: Point) -> Iterator[Callable[[], object]]:
    """Until the block ends, whoever comes to the point waits there; what is given waits until somebody does."""
    name = f"wait_for_test_{point.lock}"
    with look_past_rules(fleet.environment, autocommit=True) as owner:

        def somebody_waits() -> bool:
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
            return owner.execute(waiting, [point.lock]).fetchone()[0] > 0

        owner.execute("SELECT pg_advisory_lock(%s)", [point.lock])
        owner.execute(
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM pg_advisory_xact_lock_shared({point.lock}); RETURN NEW; END $$"
        )
        owner.execute(
            f"CREATE TRIGGER {name} BEFORE {point.event} ON {point.table} FOR EACH ROW WHEN ({point.when}) EXECUTE FUNCTION {name}()"
        )
        try:
            yield lambda: wait_for(somebody_waits, seconds=60, what=f"a worker at {point.table}")
        finally:
            owner.execute("SELECT pg_advisory_unlock(%s)", [point.lock])
            owner.execute(f"DROP TRIGGER {name} ON {point.table}")


@pytest.mark.parametrize("point", [PUBLISHING, CLOSING], ids=["publish", "finish"])
def test_a_worker_killed_at_the_end_loses_and_doubles_nothing(client: Client, fleet: Fleet, scripted, provider, point):
    client.upload(*scripted, files())
    with held(fleet, point) as reached:
        run = client.start(*scripted)
        reached()
        fleet.kill("main")
    fleet.start("main")
    check_whole(client, scripted, client.finish(run, seconds=120), provider, kills=0)
    history = client.call("GET", f"/knowledge-bases/{scripted[0]}/sources/{scripted[1]}/runs")["items"]
    assert [entry["id"] for entry in history] == [run]


def test_a_worker_killed_between_a_run_and_the_one_that_follows_it_leaves_no_file_behind(client: Client, fleet: Fleet, scripted, provider):
    client.upload(*scripted, {"early.md": b"# Early\n\nThe heron stands in the shallow water."})
    with held(fleet, FOLLOWING) as reached:
        with held(fleet, PUBLISHING) as publishing:
            run = client.start(*scripted)
            publishing()
            client.upload(*scripted, {"late.md": b"# Late\n\nThe otter dives for crayfish."})
        reached()
        fleet.kill("main")
    fleet.start("main")
    assert client.finish(run)["status"] == "succeeded"
    wait_for(lambda: client.texts(scripted[0], "otter crayfish", mode="keyword"), seconds=60, what="the file that came late")
    history = client.call("GET", f"/knowledge-bases/{scripted[0]}/sources/{scripted[1]}/runs")["items"]
    assert len(history) == 2
