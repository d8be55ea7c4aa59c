"""What is large: one text, one document, many files, a whole knowledge base away. Memory stays bounded; times are told."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmarks.soak.ground import Bounds, Figures, Ground, say
from tests.benchmarks.soak.texts import Author
from tests.fleet import wait_for

KEYS = ("lost", "stuck", "errors")
# A run of 20,000 chunks takes longer than the short times of the other soaks allow a worker that is alive.
SETTINGS = {"LECTERN_LEASE_SECONDS": "60", "LECTERN_SLICE_SECONDS": "10", "LECTERN_DEAD_RUN_SECONDS": "900"}
LIMITS_MB = {"web": 550, "main": 900, "extract": 1500, "embed": 500}
WHOLE = {"settings": {"max_content_length": 2_000_000_000, "max_segments_per_run": 1_000_000}}


def soak(
    ground: Ground,
    figures: Figures,
    bounds: Bounds,
    chance: random.Random,
    *,
    megabytes: int = 30,
    chunks: int = 20_000,
    small_files: int = 2000,
    deleted_chunks: int = 5000,
    await_rows: bool = True,
) -> None:
    model = ground.register_model(dimension=256)
    steps = (
        ("large_text", lambda: _large_text(ground, figures, model, megabytes)),
        ("large_document", lambda: _large_document(ground, figures, model, chunks)),
        ("small_files", lambda: _small_files(ground, figures, model, small_files, chance)),
        ("deletion", lambda: _deletion(ground, figures, model, deleted_chunks, await_rows=await_rows)),
    )
    with _watched(ground):
        for name, step in steps:
            if not bounds.allow(figures.rounds):
                break
            say(f"size: {name}")
            started = time.monotonic()
            step()
            figures.notes[f"{name}_s"] = round(time.monotonic() - started, 1)
            figures.rounds += 1
    peaks = {name: round(peak) for name, peak in ground.fleet.peak_mb.items()}
    figures.notes["peak_rss_mb"] = peaks
    for name, limit in LIMITS_MB.items():
        figures.count("errors", f"{name} took {peaks.get(name)} MB, more than {limit}", peaks.get(name, 0) > limit)


@contextmanager
def _watched(ground: Ground) -> Iterator[None]:
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            ground.fleet.note_memory()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _made(ground: Ground, model: str) -> tuple[str, str]:
    """A knowledge base whose documents are taken whole."""
    source = {
        "name": "files",
        "type": "upload",
        "upload": {"max_files": 10_000, "max_file_bytes": 52_428_800, "max_total_bytes": 2_000_000_000},
    }
    knowledge_base, sources = ground.make_knowledge_base(model, sources=[source | WHOLE])
    return knowledge_base, sources["files"]


def sentences(number: int, *, first: int = 0) -> str:
    """Paragraphs of which no two are alike."""
    return "\n\n".join(
        f"Entry {index} of the register: valve v{index} opens at {index % 97} bar, gauge g{index} reads {index % 89}, and the crew of shift"
        f" s{index % 31} writes both numbers into the book before the boiler b{index % 53} is started again."
        for index in range(first, first + number)
    )


def _large_text(ground: Ground, figures: Figures, model: str, megabytes: int) -> None:
    """Pushed text is cut at the default limit of a document, and says so; what is left answers."""
    knowledge_base, _ = _made(ground, model)
    text = sentences(megabytes * 1_000_000 // 160)[: megabytes * 1_000_000]
    answer = ground.client.http.post(f"/knowledge-bases/{knowledge_base}/ingest", json={"text": text, "document_name": "large"})
    if answer.status_code != 202:
        figures.count("errors", f"{megabytes} MB of text: {answer.status_code} {answer.text[:300]}")
        return
    path = f"/knowledge-bases/{knowledge_base}/ingestions/{answer.json()['ingestion_id']}"
    state = wait_for(
        lambda: (now := ground.client.call("GET", path))["status"] in ("completed", "failed") and now,
        seconds=300,
        what="the large text",
        every=1,
    )
    figures.count("errors", f"the large text: {state}", state["status"] == "failed" and not state["error"])
    figures.notes["large_text"] = state["status"] if state["status"] == "completed" else state["reason"]


def _large_document(ground: Ground, figures: Figures, model: str, chunks: int) -> None:
    knowledge_base, source = _made(ground, model)
    ground.client.upload(knowledge_base, source, {"register.md": sentences(chunks).encode()})
    made = _ingest(ground, figures, knowledge_base, source, seconds=600)
    figures.notes["large_document_chunks"] = made
    if made:
        _finds(ground, figures, knowledge_base, f"v{chunks - 1}")


def _small_files(ground: Ground, figures: Figures, model: str, number: int, chance: random.Random) -> None:
    knowledge_base, source = _made(ground, model)
    author = Author(chance)
    for start in range(0, number, 50):
        texts = {f"small-{index}.md": author.write(parts=(1, 1)).bytes for index in range(start, min(number, start + 50))}
        stored = ground.client.upload(knowledge_base, source, texts)["stored"]
        figures.count("lost", "small files refused", len(texts) - len(stored))
    uploaded = time.monotonic()
    _ingest(ground, figures, knowledge_base, source, seconds=600)
    figures.notes["small_files_run_s"] = round(time.monotonic() - uploaded, 1)
    answering = ground.value("SELECT count(*) FROM kb_document WHERE knowledge_base_id = %s AND chunk_count > 0", [knowledge_base])
    figures.count("lost", f"{number - answering} of {number} small files do not answer", number - answering)


def _deletion(ground: Ground, figures: Figures, model: str, chunks: int, *, await_rows: bool) -> None:
    """Gone for a reader at once; the housekeeping, once a minute, takes the rows."""
    knowledge_base, source = _made(ground, model)
    ground.client.upload(knowledge_base, source, {"register.md": sentences(chunks).encode()})
    _ingest(ground, figures, knowledge_base, source, seconds=600)
    started = time.monotonic()
    ground.client.call("DELETE", f"/knowledge-bases/{knowledge_base}")
    figures.notes["deletion_answer_ms"] = round(1000 * (time.monotonic() - started))
    status = ground.client.http.get(f"/knowledge-bases/{knowledge_base}").status_code
    figures.count("errors", f"a deleted knowledge base answers {status}", status != 404)
    if not await_rows:
        return
    left = "SELECT (SELECT count(*) FROM kb_chunk WHERE knowledge_base_id = %(kb)s) + (SELECT count(*) FROM lexical WHERE kb = %(kb)s)"
    try:
        wait_for(lambda: ground.value(left, {"kb": knowledge_base}) == 0, seconds=150, what="the rows to go", every=0.5)
    except AssertionError:
        figures.count("stuck", f"{ground.value(left, {'kb': knowledge_base})} rows of a deleted knowledge base are left")
    figures.notes["deletion_clear_s"] = round(time.monotonic() - started, 1)


def _ingest(ground: Ground, figures: Figures, knowledge_base: str, source: str, *, seconds: float) -> int:
    """Chunks that the run made."""
    state = ground.run_to_end(knowledge_base, source, seconds=seconds)
    if state is None:
        figures.count("stuck", f"a run does not end in {seconds:.0f} s: {ground.open_runs(knowledge_base)}")
        return 0
    figures.count("lost", f"a run ended {state['status']}: {state['error']} {state['counters']}", state["status"] != "succeeded")
    return int(state["counters"].get("chunks") or 0)


def _finds(ground: Ground, figures: Figures, knowledge_base: str, word: str) -> None:
    texts = ground.client.texts(knowledge_base, word, mode="keyword", min_score=0)
    figures.count("lost", f"the end of the large document ({word}) is not found", not any(word in text for text in texts))
