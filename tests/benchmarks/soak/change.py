"""A change of model under constant questions: the worker is killed twice on the way, a document is published, and the way back is taken.

No question fails, none is answered with nothing or from two models, and p95 stays below twice what it was before. Both models are served by
one local server in a process of its own, so that questions cost the same before and after.
"""

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.benchmarks.soak.ground import CHUNKING, Bounds, Figures, Ground, say
from tests.benchmarks.soak.size import sentences
from tests.fleet import ROOT, wait_for

KEYS = ("failed", "empty", "mixed", "lost", "paid_twice", "stuck", "slow", "errors")
SETTINGS = {"LECTERN_LEASE_SECONDS": "10", "LECTERN_SLICE_SECONDS": "5", "LECTERN_DEAD_RUN_SECONDS": "900"}
BATCH = 64  # texts of a request to the server
CHUNKS_OF_A_DOCUMENT = 100
CLIENTS = 2
PAUSE_SECONDS = 0.02  # of a client between two questions
JUDGED_FROM = 1_000  # chunks; with fewer the change is over before a percentile means anything
MOST_SLOWDOWN = 2.0


@dataclass
class Load:
    """Clients that ask without end, and what came of it."""

    ground: Ground
    knowledge_base: str
    chunks: int
    figures: Figures
    times: list[tuple[float, float]] = field(default_factory=list)  # (when it began, seconds)
    models: Counter[str] = field(default_factory=Counter)
    done: threading.Event = field(default_factory=threading.Event)

    def ask_without_end(self, number: int) -> None:
        chance = random.Random(number)
        key = self.ground.client.http.headers["Authorization"]
        with httpx.Client(base_url=self.ground.client.http.base_url, headers={"Authorization": key}, timeout=30, trust_env=False) as http:
            while not self.done.is_set():
                self._ask(http, f"which gauge goes with valve v{chance.randrange(self.chunks)}")
                time.sleep(PAUSE_SECONDS)

    def _ask(self, http: httpx.Client, question: str) -> None:
        body = {"query": question, "knowledge_bases": [self.knowledge_base], "min_score": 0, "explain": True}
        began = time.monotonic()
        try:
            answer = http.post("/search", json=body)
        except httpx.HTTPError as error:
            self.figures.count("failed", f"{question}: {type(error).__name__}: {error}")
            return
        self.times.append((began, time.monotonic() - began))
        if answer.status_code != 200:
            self.figures.count("failed", f"{question}: {answer.status_code} {answer.text[:300]}")
            return
        found = answer.json()
        self.figures.count("empty", f"{question}: {found.get('reason')}", not found["hits"])
        self.figures.count("failed", f"{question}: {found.get('degraded')}", bool(found.get("degraded")))
        asked = found["explanation"]["embedding_models"]
        self.figures.count("mixed", f"{question}: answered from {asked}", len(asked) != 1)
        self.models.update(asked)

    def p95(self, since: float, until: float) -> float:
        """Milliseconds."""
        spent = sorted(seconds for began, seconds in self.times if since <= began < until)
        return round(1000 * spent[int(0.95 * len(spent))], 1) if spent else 0.0


def soak(
    ground: Ground,
    figures: Figures,
    bounds: Bounds,
    chance: random.Random,
    *,
    chunks: int = 20_000,
    kills: int = 2,
    calm_seconds: float = 10.0,
) -> None:
    with _server() as (endpoint, log):
        old, new = (_register(ground, endpoint) for _ in range(2))
        knowledge_base, source = _filled(ground, figures, old, chunks)
        load = Load(ground, knowledge_base, chunks, figures)
        with _asking(load):
            calm = _times(load, calm_seconds)
            began = time.monotonic()
            _name(ground, knowledge_base, new)
            _kill_on_the_way(ground, figures, knowledge_base, kills)
            _publish(ground, figures, knowledge_base, source, "valve-new.md", "The valve vnew is new, and gauge gnew goes with it.")
            change = _until_switched(ground, figures, knowledge_base)
            switched = time.monotonic()
            during = load.p95(began, switched)
            after = _times(load, calm_seconds)
            _finds(ground, figures, knowledge_base, "vnew", new)
            _roll_back(ground, figures, knowledge_base, old)
        figures.rounds += 1
        _judge(figures, load, change, _paid(log, new), kills=kills, calm=calm, during=during, after=after, chunks=chunks)
        figures.notes["change_s"] = round(switched - began, 1)


def _judge(
    figures: Figures,
    load: Load,
    change: dict[str, Any],
    paid: Counter[str],
    *,
    kills: int,
    calm: float,
    during: float,
    after: float,
    chunks: int,
) -> None:
    again = sum(count - 1 for count in paid.values())
    figures.count("paid_twice", f"{again} texts were paid again in {kills} kills of {BATCH}", max(0, again - BATCH * kills))
    slowdown = round(during / calm, 2) if calm else 0.0
    if chunks >= JUDGED_FROM:
        figures.count("slow", f"p95 was {calm} ms before and {during} ms during the change", slowdown >= MOST_SLOWDOWN)
    figures.notes |= {
        "chunks": change.get("filled", 0),
        "kills": kills,
        "questions": len(load.times),
        "asked": dict(load.models),
        "p95_before_ms": calm,
        "p95_during_ms": during,
        "p95_after_ms": after,
        "slowdown": slowdown,
        "texts": len(paid),
        "paid_again": again,
    }


@contextmanager
def _server() -> Iterator[tuple[str, Path]]:
    """(endpoint, log of requests) of an OpenAI-shaped server in a process of its own, whose work does not weigh on the clients'."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "requests.jsonl")
        command = [sys.executable, "tests/servers/openai_server.py", "--log", str(log), "--dimension", "384"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            yield process.stdout.readline().strip(), log
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _register(ground: Ground, endpoint: str) -> str:
    name = f"soak-{uuid4().hex[:8]}"
    parameters = {"batch_texts": BATCH, "timeout": 10}
    body = {"name": name, "provider": "openai", "model": name, "dimension": 384, "max_input_tokens": 256, "endpoint": endpoint}
    ground.client.call("POST", "/embedding-models", json=body | {"parameters": parameters})
    return name


def _filled(ground: Ground, figures: Figures, model: str, chunks: int) -> tuple[str, str]:
    """(knowledge base, source) with so many chunks. They are cut by an estimate, which is the same for both models."""
    knowledge_base, sources = ground.make_knowledge_base(model, chunking={**CHUNKING, "tokenizer": "estimate"})
    source = sources["files"]
    firsts = range(0, chunks, CHUNKS_OF_A_DOCUMENT)
    texts = {f"{first:06}.md": sentences(min(CHUNKS_OF_A_DOCUMENT, chunks - first), first=first).encode() for first in firsts}
    for start in range(0, len(texts), 50):
        ground.client.upload(knowledge_base, source, dict(list(texts.items())[start : start + 50]))
    state = ground.run_to_end(knowledge_base, source, seconds=1200)
    figures.count("stuck", "the first run does not end", state is None)
    say(f"change: {state and state['counters'].get('chunks')} chunks are there")
    return knowledge_base, source


@contextmanager
def _asking(load: Load) -> Iterator[None]:
    threads = [threading.Thread(target=load.ask_without_end, args=(number,), daemon=True) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        load.done.set()
        for thread in threads:
            thread.join()


def _times(load: Load, seconds: float) -> float:
    """p95 of the time from now on; the first second is left out, in which a model's client is made."""
    time.sleep(1.0)
    since = time.monotonic()
    time.sleep(seconds)
    return load.p95(since, time.monotonic())


def _name(ground: Ground, knowledge_base: str, model: str) -> None:
    current = ground.client.call("GET", f"/knowledge-bases/{knowledge_base}")
    document = {**current["document"], "embedding_model": model}
    ground.client.call("PUT", f"/knowledge-bases/{knowledge_base}", json=document, params={"version": current["version"]})


def _change(ground: Ground, knowledge_base: str) -> dict[str, Any]:
    return ground.client.call("GET", f"/knowledge-bases/{knowledge_base}/embeddings")["change"]


def _kill_on_the_way(ground: Ground, figures: Figures, knowledge_base: str, kills: int) -> None:
    """The embed worker, each time after another part of the way, and at once again."""
    for number in range(kills):
        part = (number + 1) / (kills + 2)

        def is_there(part: float = part) -> bool:
            change = _change(ground, knowledge_base)
            return change["state"] != "filling" or change["filled"] >= part * change["chunks"]

        wait_for(is_there, seconds=600, what=f"{part:.0%} of the change", every=0.05)
        change = _change(ground, knowledge_base)
        figures.count("errors", f"the change was {change['state']} before kill {number + 1}", change["state"] != "filling")
        say(f"change: kill {number + 1} at {change['filled']} of {change['chunks']}, {change['eta_seconds']} s were left")
        ground.fleet.kill("embed")
        ground.fleet.start("embed")


def _publish(ground: Ground, figures: Figures, knowledge_base: str, source: str, name: str, text: str) -> None:
    ground.client.upload(knowledge_base, source, {name: text.encode()})
    state = ground.run_to_end(knowledge_base, source, seconds=300)
    figures.count("lost", f"the run during the change ended {state}", state is None or state["status"] != "succeeded")


def _until_switched(ground: Ground, figures: Figures, knowledge_base: str) -> dict[str, Any]:
    try:
        wait_for(
            lambda: _change(ground, knowledge_base)["state"] not in ("filling", "switching"), seconds=900, what="the switch", every=0.2
        )
    except AssertionError as error:
        figures.count("stuck", str(error))
    change = _change(ground, knowledge_base)
    figures.count("lost", f"the change ended {change}", change["state"] != "grace")
    return change


def _finds(ground: Ground, figures: Figures, knowledge_base: str, word: str, model: str) -> None:
    """By meaning alone, and by that model."""
    found = ground.client.search(knowledge_base, f"valve {word}", mode="vector", min_score=0, explain=True)
    texts, asked = [hit["text"] for hit in found["hits"]], found["explanation"]["embedding_models"]
    figures.count("lost", f"{word} is not found by {asked}", not any(word in text for text in texts) or asked != [model])
    status = ground.client.call("GET", f"/knowledge-bases/{knowledge_base}/embeddings")
    figures.count("lost", f"chunks without a vector: {status}", bool(status["missing"]))


def _roll_back(ground: Ground, figures: Figures, knowledge_base: str, model: str) -> None:
    """What was published after it, too, is found by the model before."""
    began = time.monotonic()
    ground.client.call("POST", f"/knowledge-bases/{knowledge_base}/embeddings/rollback")
    _until_switched(ground, figures, knowledge_base)
    figures.notes["rollback_s"] = round(time.monotonic() - began, 2)
    _finds(ground, figures, knowledge_base, "vnew", model)


def _paid(log: Path, model: str) -> Counter[str]:
    """Texts that were sent for documents to one model, and how often; questions are not counted."""
    rows = (json.loads(line) for line in log.read_text().splitlines())
    texts = (text for row in rows if row["model"] == model and row["status"] == 200 for text in row["texts"])
    return Counter(text for text in texts if not text.startswith(("which gauge", "valve v")))
