"""Workers die by `kill -9` in every stage, Valkey forgets, two people press the button: nothing is lost, doubled or paid twice."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
import redis

from tests.client import Client
from tests.fleet import Fleet, wait_for
from tests.servers.openai_server import ScriptedServer

pytestmark = pytest.mark.journey

DOCUMENTS = 12
BATCH = 8


@pytest.fixture
def provider() -> Iterator[ScriptedServer]:
    """Slow enough that a kill falls into a call."""
    with ScriptedServer(dimension=384, delay=0.3) as server:
        yield server


@pytest.fixture
def kb(client: Client, provider: ScriptedServer) -> tuple[str, str]:
    name = f"scripted-{uuid4().hex[:8]}"
    client.call(
        "POST",
        "/embedding-models",
        json={
            "name": name,
            "provider": "openai",
            "model": "scripted",
            "dimension": 384,
            "max_input_tokens": 256,
            "endpoint": provider.endpoint,
            "parameters": {"batch_texts": BATCH, "timeout": 2},
        },
    )
    return client.create_knowledge_base(f"kills {uuid4().hex[:8]}", embedding_model=name)


def files() -> dict[str, bytes]:
    """Twelve documents of several chunks each, no two chunks alike."""
    return {
        f"document-{number}.md": "\n\n".join(
            f"## Part {part} of {number}\n\n" + " ".join(f"word{number}x{part}x{index} means item {index}" for index in range(40))
            for part in range(4)
        ).encode()
        for number in range(DOCUMENTS)
    }


def paid_twice(provider: ScriptedServer) -> int:
    return sum(count - 1 for count in Counter(provider.paid_texts()).values())


def check_whole(client: Client, kb: tuple[str, str], state: dict, provider: ScriptedServer, *, kills: int) -> None:
    """Every document answers once, and at most a batch a kill was paid again."""
    counters = state["counters"]
    assert (state["status"], counters["ingested"]) == ("succeeded", DOCUMENTS), state
    documents = client.call("GET", f"/knowledge-bases/{kb[0]}/documents?limit=100")["items"]
    assert len(documents) == DOCUMENTS
    assert sum(document["chunks"] for document in documents) == counters["chunks"]
    for number in (0, DOCUMENTS - 1):
        texts = client.texts(kb[0], f"word{number}x2x7", mode="keyword", neighbours=0, max_results=10)
        assert len(texts) == 1, texts
    assert len(set(provider.paid_texts())) == counters["chunks"]
    assert paid_twice(provider) <= BATCH * kills


@pytest.mark.parametrize("victim", ["main", "extract", "embed"])
def test_a_killed_worker_loses_and_doubles_nothing(client: Client, fleet: Fleet, kb, provider, victim):
    client.upload(*kb, files())
    run = client.start(*kb)
    if victim == "embed":
        wait_for(lambda: len(provider.paid_texts()) >= 2 * BATCH, seconds=60, what="the second batch")
    else:
        wait_for(lambda: client.run(run)["counters"].get("found"), seconds=60, what="the listing")
    fleet.kill(victim)
    fleet.start(victim)
    check_whole(client, kb, client.finish(run, seconds=120), provider, kills=1)


def test_the_whole_fleet_dies_and_comes_back(client: Client, fleet: Fleet, kb, provider):
    client.upload(*kb, files())
    run = client.start(*kb)
    wait_for(lambda: len(provider.paid_texts()) >= BATCH, seconds=60, what="the first batch")
    for name in ("embed", "extract", "main", "beat"):
        fleet.kill(name)
    fleet.start()
    check_whole(client, kb, client.finish(run, seconds=120), provider, kills=1)


def test_a_flushed_valkey_does_not_stop_a_run(client: Client, fleet: Fleet, kb, provider):
    client.upload(*kb, files())
    run = client.start(*kb)
    wait_for(lambda: len(provider.paid_texts()) >= BATCH, seconds=60, what="the first batch")
    redis.Redis.from_url(fleet.environment["REDIS_URL"]).flushdb()
    check_whole(client, kb, client.finish(run, seconds=120), provider, kills=0)


def test_two_starts_at_once_make_one_run(client: Client, kb, provider):
    client.upload(*kb, files())
    path = f"/knowledge-bases/{kb[0]}/sources/{kb[1]}/run"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.http.post(path), range(8)))
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 7
    started = next(answer.json()["run_id"] for answer in answers if answer.status_code == 202)
    assert {answer.json()["run_id"] for answer in answers if answer.status_code == 409} == {started}
    check_whole(client, kb, client.finish(started, seconds=120), provider, kills=0)


def test_a_file_deleted_in_the_middle_of_a_run_stays_away(client: Client, kb, provider):
    client.upload(*kb, files())
    run = client.start(*kb)
    wait_for(lambda: len(provider.paid_texts()) >= BATCH, seconds=60, what="the first batch")
    listed = client.call("GET", f"/knowledge-bases/{kb[0]}/sources/{kb[1]}/files?limit=100")["items"]
    gone = [entry for entry in listed if entry["file_name"] in ("document-0.md", "document-11.md")]
    for entry in gone:
        client.call("DELETE", f"/knowledge-bases/{kb[0]}/sources/{kb[1]}/files/{entry['file_id']}")
    state = client.finish(run, seconds=120)
    assert state["status"] in ("succeeded", "partial"), state
    for number in (0, 11):
        assert client.texts(kb[0], f"word{number}x2x7", mode="keyword") == []
    assert client.texts(kb[0], "word5x2x7", mode="keyword")


def test_a_provider_that_asks_for_patience_gets_it(client: Client, kb, provider):
    from tests.servers.openai_server import Answer

    provider.answer_next(Answer(status=429, retry_after=1), Answer(status=500), Answer(drop=True))
    client.upload(*kb, files())
    check_whole(client, kb, client.finish(client.start(*kb), seconds=120), provider, kills=1)


def test_a_refused_key_fails_the_documents_with_a_sentence(client: Client, kb, provider):
    from tests.servers.openai_server import Answer

    provider.answer_next(*[Answer(status=401)] * 40)
    client.upload(*kb, files())
    state = client.finish(client.start(*kb), seconds=120)
    assert state["status"] == "failed"
    assert "credential" in state["error"].lower() or "key" in state["error"].lower(), state["error"]
