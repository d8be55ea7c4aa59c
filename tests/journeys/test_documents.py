"""A file goes in and answers; it changes, and only what changed is embedded; it is deleted, and is gone at once."""

from uuid import uuid4

import pytest

from tests.client import Client
from tests.fleet import wait_for

pytestmark = pytest.mark.journey


@pytest.fixture
def kb(client: Client) -> tuple[str, str]:
    return client.create_knowledge_base(f"documents {uuid4().hex[:8]}")


def handbook(*, limit: str = "forty", tag: str = "") -> bytes:
    """Eight chapters; `tag` keeps one test's texts, and so their vectors, apart from another's."""
    sections = [
        f"## Chapter {number}\n\nThis chapter explains part {number} of the machine {tag}."
        f" Its valve {number} opens at {limit if number == 3 else 'ten'} bar."
        f" The operator reads gauge {number} twice and writes the value into the log."
        for number in range(1, 9)
    ]
    return ("# Handbook\n\n" + "\n\n".join(sections)).encode()


def test_a_file_goes_in_and_is_found_with_its_citation(client, kb):
    client.upload(*kb, {"fox.md": b"# Foxes\n\nThe quick brown fox jumps over the lazy dog near the river bank."})
    state = client.ingest(*kb)
    assert (state["status"], state["counters"]["ingested"]) == ("succeeded", 1)
    answer = client.search(kb[0], "Which animal jumps over the dog?")
    hit = answer["hits"][0]
    assert "quick brown fox" in hit["text"]
    assert hit["citation"]
    assert hit["document"]["title"] == "Foxes"
    assert answer["reason"] in (None, "")


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
def test_every_mode_finds_it(client, kb, mode):
    client.upload(*kb, {"pump.txt": b"The pump P-4711 needs a new seal every second year.", "cat.txt": b"Cats sleep most of the day."})
    client.ingest(*kb)
    assert "P-4711" in client.texts(kb[0], "seal of pump P-4711", mode=mode)[0]


def test_a_second_run_over_unchanged_files_does_nothing(client, kb):
    client.upload(*kb, {"handbook.md": handbook()})
    client.ingest(*kb)
    counters = client.ingest(*kb)["counters"]
    assert (counters["unchanged"], counters["ingested"], counters["embeddings_computed"]) == (1, 0, 0)


def test_a_changed_file_embeds_only_what_changed(client, kb):
    client.upload(*kb, {"handbook.md": handbook(tag=kb[0])})
    first = client.ingest(*kb)["counters"]
    client.upload(*kb, {"handbook.md": handbook(limit="ninety", tag=kb[0])})
    second = client.ingest(*kb)["counters"]
    assert first["embeddings_computed"] >= 2
    assert second["embeddings_computed"] == 1
    assert second["embeddings_reused"] == first["chunks"] - 1
    texts = " ".join(client.texts(kb[0], "At how many bar does valve 3 open?", max_results=20, mode="keyword"))
    assert "ninety" in texts
    assert "forty" not in texts


def test_a_deleted_file_is_gone_at_once(client, kb):
    client.upload(*kb, {"secret.md": b"The password of the vault is rhubarb.", "other.md": b"The vault stands in the cellar."})
    client.ingest(*kb)
    assert any("rhubarb" in text for text in client.texts(kb[0], "password of the vault"))
    files = client.call("GET", f"/knowledge-bases/{kb[0]}/sources/{kb[1]}/files")["items"]
    secret = next(entry for entry in files if entry["file_name"] == "secret.md")
    client.call("DELETE", f"/knowledge-bases/{kb[0]}/sources/{kb[1]}/files/{secret['file_id']}")
    for mode in ("vector", "keyword", "hybrid"):
        assert not any("rhubarb" in text for text in client.texts(kb[0], "password of the vault", mode=mode, min_score=0))


def test_a_pushed_text_answers_and_is_replaced(client, kb):
    def push(text: str) -> None:
        path = f"/knowledge-bases/{kb[0]}/ingest?document_name=price.md&replace=true"
        answer = client.call("POST", path, content=text.encode(), headers={"Content-Type": "text/plain"})
        status = f"/knowledge-bases/{kb[0]}/ingestions/{answer['ingestion_id']}"
        done = wait_for(
            lambda: (state := client.call("GET", status))["status"] in ("completed", "failed") and state, seconds=60, what="the ingestion"
        )
        assert done["status"] == "completed", done

    push("The licence costs ten euros a month.")
    push("The licence costs twelve euros a month.")
    texts = client.texts(kb[0], "What does the licence cost?", min_score=0)
    assert texts == ["The licence costs twelve euros a month."]


def test_an_empty_answer_says_why(client, kb):
    assert client.search(kb[0], "anything")["reason"] == "knowledge_base_empty"
