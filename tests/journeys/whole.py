"""What goes in before something dies, and that all of it is there afterwards: once, and paid once."""

from collections import Counter
from uuid import uuid4

from tests.client import Client
from tests.servers.openai_server import ScriptedServer

DOCUMENTS = 12
BATCH = 8


def knowledge_base_on(client: Client, provider: ScriptedServer) -> tuple[str, str]:
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
