"""Workers die by `kill -9` in every stage, Valkey forgets, two people press the button: nothing is lost, doubled or paid twice."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from tests.client import Client
from tests.fleet import Fleet, wait_for
from tests.journeys.whole import BATCH, check_whole, files

pytestmark = pytest.mark.journey


@pytest.mark.parametrize("victim", ["main", "extract", "embed"])
def test_a_killed_worker_loses_and_doubles_nothing(client: Client, fleet: Fleet, scripted, provider, victim):
    client.upload(*scripted, files())
    run = client.start(*scripted)
    if victim == "embed":
        wait_for(lambda: len(provider.paid_texts()) >= 2 * BATCH, seconds=60, what="the second batch")
    else:
        wait_for(lambda: client.run(run)["counters"].get("found"), seconds=60, what="the listing")
    fleet.kill(victim)
    fleet.start(victim)
    check_whole(client, scripted, client.finish(run, seconds=120), provider, kills=1)


def test_the_whole_fleet_dies_and_comes_back(client: Client, fleet: Fleet, scripted, provider):
    client.upload(*scripted, files())
    run = client.start(*scripted)
    wait_for(lambda: len(provider.paid_texts()) >= BATCH, seconds=60, what="the first batch")
    for name in ("embed", "extract", "main", "beat"):
        fleet.kill(name)
    fleet.start()
    check_whole(client, scripted, client.finish(run, seconds=120), provider, kills=1)


def test_a_flushed_valkey_does_not_stop_a_run(client: Client, fleet: Fleet, scripted, provider):
    client.upload(*scripted, files())
    run = client.start(*scripted)
    wait_for(lambda: len(provider.paid_texts()) >= BATCH, seconds=60, what="the first batch")
    with redis.Redis.from_url(fleet.environment["REDIS_URL"]) as broker:
        broker.flushdb()
    check_whole(client, scripted, client.finish(run, seconds=120), provider, kills=0)


def test_two_starts_at_once_make_one_run(client: Client, scripted, provider):
    client.upload(*scripted, files())
    path = f"/knowledge-bases/{scripted[0]}/sources/{scripted[1]}/run"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.http.post(path), range(8)))
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 7
    started = next(answer.json()["run_id"] for answer in answers if answer.status_code == 202)
    assert {answer.json()["run_id"] for answer in answers if answer.status_code == 409} == {started}
    check_whole(client, scripted, client.finish(started, seconds=120), provider, kills=0)


def test_a_file_deleted_in_the_middle_of_a_run_stays_away(client: Client, scripted, provider):
    client.upload(*scripted, files())
    run = client.start(*scripted)
    wait_for(lambda: len(provider.paid_texts()) >= BATCH, seconds=60, what="the first batch")
    listed = client.call("GET", f"/knowledge-bases/{scripted[0]}/sources/{scripted[1]}/files?limit=100")["items"]
    gone = [entry for entry in listed if entry["file_name"] in ("document-0.md", "document-11.md")]
    for entry in gone:
        client.call("DELETE", f"/knowledge-bases/{scripted[0]}/sources/{scripted[1]}/files/{entry['file_id']}")
    state = client.finish(run, seconds=120)
    assert state["status"] in ("succeeded", "partial"), state
    for number in (0, 11):
        assert client.texts(scripted[0], f"word{number}x2x7", mode="keyword") == []
    assert client.texts(scripted[0], "word5x2x7", mode="keyword")


def test_a_provider_that_asks_for_patience_gets_it(client: Client, scripted, provider):
    from tests.servers.openai_server import Answer

    provider.answer_next(Answer(status=429, retry_after=1), Answer(status=500), Answer(drop=True))
    client.upload(*scripted, files())
    check_whole(client, scripted, client.finish(client.start(*scripted), seconds=120), provider, kills=1)


def test_a_refused_key_fails_the_documents_with_a_sentence(client: Client, scripted, provider):
    from tests.servers.openai_server import Answer

    provider.answer_next(*[Answer(status=401)] * 40)
    client.upload(*scripted, files())
    state = client.finish(client.start(*scripted), seconds=120)
    assert state["status"] == "failed"
    assert "credential" in state["error"].lower() or "key" in state["error"].lower(), state["error"]
