"""Long scans on a real fleet: a worker that is killed in the middle, many pages, and what waits beside them."""

import os
import signal
from collections.abc import Iterator
from uuid import uuid4

import psutil
import pytest
from PIL import Image, ImageDraw, ImageFont

from ingestion.recognize.engines import print_engine
from tests.benchmarks.soak.ground import Ground
from tests.client import Client
from tests.fleet import Fleet, wait_for
from tests.installation import manage
from tests.samples.pictures import print_page, saved, scanned_pdf

pytestmark = [
    pytest.mark.journey,
    pytest.mark.soak,
    pytest.mark.skipif(print_engine() is None, reason="no text recognition is installed (Debian: apt install tesseract-ocr)"),
]
READ = "SELECT position, used_at, text FROM ingestion_recognizedpart WHERE content_hash = sha256(%s) AND text IS NOT NULL ORDER BY position"
_NEIGHBOUR = """
from kb import services
organization = services.create_organization(name={name!r})
print(services.create_api_key(organization, name="neighbour", role="admin")[1])
"""
KILLED_PAGES = 14
MANY_PAGES = 400
WORKER_MB = 300
CHILD_MB = 300


def dense_page(number: int) -> Image.Image:
    """A page that takes a second or two."""
    lines = [f"Rule {rule} of page {number} says that nobody may leave the yard before noon." for rule in range(10, 24)]
    return print_page(lines, letters=40, mode="L")


def small_page(number: int) -> Image.Image:
    """A line of print that is read in a tenth of a second."""
    page = Image.new("L", (900, 260), "white")
    ImageDraw.Draw(page).text((40, 60), f"Page number {number} of the log.", fill="black", font=ImageFont.load_default(44))
    return page


def upload(ground: Ground, client: Client, name: str, content: bytes) -> tuple[str, str]:
    theirs = Ground(ground.fleet, client, ground.environment)
    knowledge_base, sources = theirs.make_knowledge_base(theirs.register_model())
    client.upload(knowledge_base, sources["files"], {name: content})
    return knowledge_base, sources["files"]


def text_of(ground: Ground, document: str) -> str:
    """Its chunks one after the other; they do not overlap."""
    return ground.value("SELECT string_agg(text, ' ' ORDER BY start) FROM kb_chunk WHERE document_id = %s", [document])


def worker_tree(ground: Ground) -> tuple[psutil.Process, list[psutil.Process]]:
    """The recognize worker with its processes, and its closed-in children apart."""
    worker = psutil.Process(ground.fleet.processes["recognize"].pid)
    children = [process for process in worker.children(recursive=True) if "ingestion.extract.child" in process.cmdline()]
    return worker, children


def test_a_killed_worker_reads_no_page_twice(ground: Ground):
    """`kill -9` of the worker alone: its child has to go by itself."""
    content = scanned_pdf([dense_page(number) for number in range(1, KILLED_PAGES + 1)])
    knowledge_base, source = upload(ground, ground.client, "rules.pdf", content)
    run = ground.client.start(knowledge_base, source)
    before: dict[int, tuple] = {}
    for committed in (3, 8):
        wait_for(lambda enough=committed: len(ground.rows(READ, [content])) >= enough, seconds=120, what=f"page {committed}")
        worker, children = worker_tree(ground)
        os.kill(worker.pid, signal.SIGKILL)
        before |= {position: (used_at, text) for position, used_at, text in ground.rows(READ, [content])}
        wait_for(lambda gone=children: not any(child.is_running() for child in gone), seconds=10, what="the end of the child")
        ground.fleet.kill("recognize")  # what the worker left in its group
        ground.fleet.start("recognize")
    state = ground.client.finish(run, seconds=240)
    assert (state["status"], state["counters"]["ingested"], state["counters"]["parts"]) == ("succeeded", 1, KILLED_PAGES), str(state)
    after = {position: (used_at, text) for position, used_at, text in ground.rows(READ, [content])}
    assert sorted(after) == list(range(KILLED_PAGES))
    assert {position: after[position] for position in before} == before
    assert 8 <= len(before) < KILLED_PAGES
    (document,) = ground.client.call("GET", f"/knowledge-bases/{knowledge_base}/documents")["items"]
    markdown = text_of(ground, document["id"])
    assert [markdown.count(f"Rule 15 of page {number} ") for number in range(1, KILLED_PAGES + 1)] == [1] * KILLED_PAGES


@pytest.fixture
def ground(fleet: Fleet, client: Client) -> Ground:
    return Ground(fleet, client, fleet.environment)


@pytest.fixture
def neighbour(ground: Ground) -> Iterator[Client]:
    """A client of another organization."""
    key = manage(ground.environment, "shell", "-v", "0", "-c", _NEIGHBOUR.format(name=f"neighbour {uuid4().hex[:8]}")).splitlines()[-1]
    client = Client(ground.fleet.url, key)
    yield client
    client.http.close()


def test_four_hundred_pages_in_bounded_memory_and_beside_a_neighbour(ground: Ground, neighbour: Client):
    pages = [small_page(number) for number in range(1, MANY_PAGES + 1)]
    knowledge_base, source = upload(
        ground, ground.client, "log.pdf", saved(pages[0], "PDF", save_all=True, append_images=pages[1:], resolution=300)
    )
    run = ground.client.start(knowledge_base, source)
    waiting: list[int] = []
    peaks = {"worker": 0.0, "child": 0.0}

    def moved(until: int) -> bool:
        counters = ground.client.run(run)["counters"]
        if counters.get("parts"):
            waiting.append(counters["parts_waiting"])
        worker, children = worker_tree(ground)
        child = sum(process.memory_info().rss for process in children) / 2**20
        whole = sum(process.memory_info().rss for process in (worker, *worker.children(recursive=True))) / 2**20
        peaks.update(worker=max(peaks["worker"], whole - child), child=max(peaks["child"], child))
        return bool(waiting) and waiting[-1] <= until

    wait_for(lambda: moved(MANY_PAGES - 20), seconds=120, what="the first pages")
    theirs = upload(ground, neighbour, "note.png", saved(small_page(4711)))
    small = neighbour.start(*theirs)
    wait_for(lambda: moved(0) or neighbour.run(small)["finished_at"], seconds=120, what="the neighbour's picture")
    served = neighbour.run(small)
    assert served["status"] == "succeeded", str(served)
    assert waiting[-1] > 0, "the neighbour waited for the whole scan"
    served_at = waiting[-1]
    wait_for(lambda: moved(0), seconds=300, what="the last page")
    state = ground.client.finish(run, seconds=120)
    assert (state["status"], state["counters"]["parts"], state["counters"]["parts_waiting"]) == ("succeeded", MANY_PAGES, 0), str(state)
    assert len(set(waiting)) > 10
    assert waiting == sorted(waiting, reverse=True)
    assert peaks["worker"] < WORKER_MB, peaks
    assert peaks["child"] < CHILD_MB, peaks
    assert neighbour.texts(theirs[0], "Page number 4711", mode="keyword")
    (document,) = ground.client.call("GET", f"/knowledge-bases/{knowledge_base}/documents")["items"]
    markdown = text_of(ground, document["id"])
    assert sum(f"Page number {number} of" in markdown for number in range(1, MANY_PAGES + 1)) > 0.97 * MANY_PAGES
    print({**{name: round(value) for name, value in peaks.items()}, "left_when_neighbour_was_served": served_at})
