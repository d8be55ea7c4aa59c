"""An evaluation and a recall check by a real worker, the one of them killed on its way."""

from uuid import uuid4

import pytest

from tests.client import Client
from tests.fleet import Fleet, wait_for

pytestmark = pytest.mark.journey

QUESTIONS = 60


@pytest.fixture
def judged(client: Client) -> str:
    knowledge_base, source = client.create_knowledge_base(f"evaluation {uuid4().hex[:8]}")
    pump = b"The pump needs a new seal every second year."
    client.upload(knowledge_base, source, {"pump.txt": pump, "cat.txt": b"Cats sleep most of the day, mostly on the warmest chair."})
    client.ingest(knowledge_base, source)
    questions = [f"Which seal does pump number {number} need?" for number in range(QUESTIONS)]
    file = {"judgements": [{"question": question, "expected": [{"document": "pump.txt", "grade": 3}]} for question in questions]}
    assert client.call("POST", f"/knowledge-bases/{knowledge_base}/judgements/file", json=file)["created"] == QUESTIONS
    return knowledge_base


def finished(client: Client, path: str) -> dict:
    def closed() -> dict | None:
        state = client.call("GET", path)
        return state if state["finished_at"] else None

    return wait_for(closed, seconds=150, what=path, every=0.2)


def test_an_evaluation_outlives_its_worker(client: Client, fleet: Fleet, judged: str) -> None:
    """The next housekeeping finds that its lease has ended."""
    path = f"/knowledge-bases/{judged}/evaluations"
    one = f"{path}/{client.call('POST', path, json={})['id']}"
    wait_for(lambda: client.call("GET", one)["done"] > 0, seconds=60, what="the first question", every=0.05)
    fleet.kill("main")
    fleet.start("main")
    state = finished(client, one)
    assert (state["status"], state["done"]) == ("succeeded", QUESTIONS)
    assert set(state["figures"]) == {"vector", "keyword", "hybrid", "own"}
    assert all((figures["scored"], figures["mrr"]) == (QUESTIONS, 1.0) for figures in state["figures"].values())
    questions = client.call("GET", f"{one}/questions?limit=200")["items"]
    assert all(question["results"] for question in questions)


def test_recall_is_checked(client: Client, judged: str) -> None:
    path = f"/knowledge-bases/{judged}/recall-checks"
    state = finished(client, f"{path}/{client.call('POST', path, json={'queries': 5})['id']}")
    assert (state["status"], state["recall"], state["verdict"]) == ("succeeded", 1.0, "well")
