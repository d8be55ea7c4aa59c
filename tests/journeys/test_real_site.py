"""A real site, the manual of PostgreSQL: every page is a document once, and only what changes is read into anything again."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from tests.client import Client
from tests.samples.manuals import NotHere, pages_within, postgresql_manual
from tests.servers.folder import Served, served
from tests.servers.openai_server import ScriptedServer

pytestmark = pytest.mark.journey
MISSED_RUNS = 2


@dataclass(frozen=True)
class Manual:
    folder: Path
    site: Served
    start: str
    depth: int

    @property
    def pages(self) -> set[str]:
        return pages_within(self.folder, self.start, depth=self.depth)


@pytest.fixture(
    params=[
        pytest.param(("tutorial-sql.html", 1), id="a chapter"),
        pytest.param(("index.html", 2), id="whole", marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
    ]
)
def manual(request, tmp_path) -> Iterator[Manual]:
    try:
        folder = Path(shutil.copytree(postgresql_manual(), tmp_path / "html"))
    except NotHere as why:
        pytest.skip(str(why))
    with served(folder) as site:
        yield Manual(folder, site, *request.param)


@pytest.fixture
def source(client: Client, manual: Manual) -> Iterator[tuple[str, str]]:
    with ScriptedServer(dimension=384) as provider:
        name = f"manual-{uuid4().hex[:8]}"
        model = {"name": name, "provider": "openai", "model": "scripted", "dimension": 384, "max_input_tokens": 256}
        client.call("POST", "/embedding-models", json=model | {"endpoint": provider.endpoint})
        web = {"start_url": manual.site.url + manual.start, "max_depth": manual.depth, "max_pages": 5000, "request_delay_ms": 0}
        entry = {"name": "manual", "web": web, "settings": {"tombstone_after_missed_runs": MISSED_RUNS, "time_budget_minutes": 60}}
        yield client.create_knowledge_base(name, embedding_model=name, sources=[entry])


def documents(client: Client, knowledge_base: str, manual: Manual) -> list[str]:
    """Names of the pages that answer."""
    found, cursor = [], ""
    while cursor is not None:
        answer = client.call("GET", f"/knowledge-bases/{knowledge_base}/documents?limit=100", params={"cursor": cursor} if cursor else {})
        found += [item["url"].removeprefix(manual.site.url) for item in answer["items"] if item["chunks"]]
        cursor = answer["next_cursor"]
    return found


def test_a_manual_is_kept_in_step(client: Client, manual: Manual, source: tuple[str, str]):
    pages = manual.pages
    if manual.depth == 2:
        assert len(pages) == len(list(manual.folder.glob("*.html")))  # 1,169 or so: it depends on the package's version

    first = client.ingest(*source, seconds=1200)
    assert (first["status"], first["counters"]["ingested"]) == ("succeeded", len(pages)), first
    assert sorted(documents(client, source[0], manual)) == sorted(pages)

    again = client.ingest(*source, seconds=600)["counters"]
    assert (again["unchanged"], again["ingested"], again["embeddings_computed"]) == (len(pages), 0, 0)

    edited = manual.folder / "tutorial-join.html"
    edited.write_text(edited.read_text().replace("</h2>", "</h2><p>A quokkaberry grows where two tables meet.</p>", 1))
    changed = client.ingest(*source, seconds=600)["counters"]
    assert (changed["ingested"], changed["unchanged"]) == (1, len(pages) - 1)
    assert 1 <= changed["embeddings_computed"] < 5
    assert "quokkaberry" in client.texts(source[0], "quokkaberry", mode="keyword", min_score=0)[0]

    gone = "tutorial-delete.html"
    (manual.folder / gone).unlink()
    for run in range(1, MISSED_RUNS + 1):
        assert gone in documents(client, source[0], manual)
        counters = client.ingest(*source, seconds=600)["counters"]
        assert counters["removed"] == (run == MISSED_RUNS)
    assert sorted(documents(client, source[0], manual)) == sorted(pages - {gone})
