"""A file sent to a real fleet answers with nothing else to run, whatever is killed on the way."""

from uuid import uuid4

import pytest

from tests.client import Client
from tests.fleet import Fleet, wait_for

pytestmark = pytest.mark.journey


@pytest.fixture
def channel(client: Client) -> tuple[str, str]:
    """(knowledge base, channel)"""
    kb, _ = client.create_knowledge_base(f"channel {uuid4().hex[:8]}")
    return kb, client.call("POST", "/channels", json={"name": f"in {kb}", "knowledge_base_id": kb})["id"]


def send(client: Client, channel: str, content: bytes, title: str) -> str:
    said = {"channel": channel, "title": title, "visibility": "organization"}
    return client.call("POST", "/files", params=said, content=content, headers={"Content-Type": "text/markdown"})["id"]


def reached(client: Client, file: str, status: str) -> dict:
    def look() -> dict | None:
        row = client.call("GET", f"/files/{file}")
        assert row["status"] in ("pending", "processing", status), row
        return row if row["status"] == status else None

    return wait_for(look, seconds=60, what=f"file {file} {status}", every=0.1)


def manual(word: str) -> bytes:
    parts = [f"## Part {n}\n\nValve {n} of the {word} opens at {n} bar and closes when gauge {n} falls." for n in range(60)]
    return f"# Manual\n\n{chr(10).join(parts)}".encode()


def test_versions_of_a_file_survive_killed_workers(client: Client, fleet: Fleet, channel):
    kb, door = channel
    first = send(client, door, manual("turbine"), "Manual")
    assert reached(client, first, "indexed")["chunks"] > 1
    assert "turbine" in client.texts(kb, "Which valve opens at 7 bar?")[0]
    second = send(client, door, manual("boiler"), "manual")
    for name in ("extract", "embed", "main"):
        fleet.kill(name)
    fleet.start()
    reached(client, second, "indexed")
    assert client.call("GET", f"/files/{first}")["status"] == "superseded"
    answers = client.texts(kb, "Which valve opens at 7 bar?", max_results=50, min_score=0)
    assert answers
    assert not any("turbine" in text for text in answers)
    content = client.http.get(f"/files/{second}/content")
    assert content.content == manual("boiler")
    assert content.headers["content-disposition"].startswith("attachment")
    assert client.call("DELETE", f"/files/{second}")["resource_deleted"] is True
    assert client.texts(kb, "Which valve opens at 7 bar?") == []


def test_a_body_without_a_length_is_refused_once_it_is_too_large(client: Client, channel):
    answer = client.http.post("/files", params={"channel": channel[1]}, content=(bytes(1_000_000) for _ in range(110)))
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"
