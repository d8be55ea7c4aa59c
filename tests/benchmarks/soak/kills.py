"""Random work while random processes die: nothing is lost, doubled, stuck, paid twice beyond the batches in flight, or comes back."""

import contextlib
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from uuid import uuid4

import httpx

from tests.benchmarks.soak.ground import BATCH, SETTLE_SECONDS, Bounds, Figures, Ground, say
from tests.benchmarks.soak.killing import Killer, restore
from tests.benchmarks.soak.reading import Key, check_gone, compare
from tests.benchmarks.soak.texts import Author, Text
from tests.servers.openai_server import ScriptedServer

KEYS = ("lost", "doubled", "stuck", "paid_twice", "wrongly_deleted", "undead", "errors")
OPERATIONS = 12


@dataclass
class Base:
    """A knowledge base and what must answer from it once everything has settled."""

    id: str
    sources: dict[str, str]
    expected: dict[Key, Text] = field(default_factory=dict)
    gone: list[Text] = field(default_factory=list)
    files: dict[Key, str] = field(default_factory=dict)


def soak(
    ground: Ground, figures: Figures, bounds: Bounds, chance: random.Random, *, operations: int = OPERATIONS, most_strikes: int = 5
) -> None:
    author = Author(chance)
    with ScriptedServer(dimension=384, delay=0.15) as provider:
        bases = [Base(*ground.make_knowledge_base(ground.register_model(provider), "left", "right")) for _ in range(2)]
        killer = Killer(ground, chance)
        while bounds.allow(figures.rounds):
            say(f"kills: round {figures.rounds}")
            _round(ground, figures, bases, author, killer, chance, operations=operations, strikes=chance.randint(2, most_strikes))
            figures.rounds += 1
        twice = Counter(provider.paid_texts())
        again = sum(count - 1 for count in twice.values())
        figures.count(
            "paid_twice", f"{again} texts were paid again in {killer.kills} kills of {BATCH}", max(0, again - BATCH * killer.kills)
        )
        figures.notes |= {
            "kills": killer.kills,
            "paid": len(twice),
            "paid_again": again,
            "documents": sum(len(base.expected) for base in bases),
        }


def _round(
    ground: Ground,
    figures: Figures,
    bases: list[Base],
    author: Author,
    killer: Killer,
    chance: random.Random,
    *,
    operations: int,
    strikes: int,
) -> None:
    failures: list[BaseException] = []
    workers = [
        threading.Thread(target=_guarded, args=(failures, ground, base, author, random.Random(chance.random()), operations), daemon=True)
        for base in bases
    ]
    for worker in workers:
        worker.start()
    for _ in range(strikes):
        time.sleep(chance.uniform(0.2, 2.5))
        killer.strike()
    restore(ground)
    for worker in workers:
        worker.join(timeout=240)
        figures.count("errors", "an operation does not come to an end", worker.is_alive())
    for failure in failures:
        figures.count("errors", f"{type(failure).__name__}: {failure}")
    for base in bases:
        _settle(ground, figures, base)
        compare(ground, figures, base.id, base.expected, chance=chance)
        check_gone(ground, figures, base.id, base.gone, chance=chance)


def _guarded(failures: list[BaseException], ground: Ground, base: Base, author: Author, chance: random.Random, operations: int) -> None:
    try:
        source = chance.choice(list(base.sources.values()))  # work for more than a moment, so that deaths fall into it
        _upload(ground, base, {(source, f"file-{uuid4().hex[:8]}.md"): author.write(parts=(4, 8)) for _ in range(6)})
        _start(ground, base, source)
        for _ in range(operations):
            _operate(ground, base, author, chance)
            time.sleep(chance.uniform(0, 0.5))
    except Exception as error:  # what a caller would see is a figure, not the end of the soak
        failures.append(error)


def _operate(ground: Ground, base: Base, author: Author, chance: random.Random) -> None:
    """One thing that a person does, repeated until it is answered; the expectation follows the answer."""
    source = chance.choice(list(base.sources.values()))
    held = sorted(key for key in base.expected if key[0] == source)
    match chance.choices(("upload", "revise", "delete", "push", "run"), (4, 3, 2, 2, 3))[0]:
        case "revise" if held:
            _upload(ground, base, {key: author.revise(base.expected[key]) for key in chance.sample(held, min(2, len(held)))})
        case "delete" if held:
            _delete(ground, base, chance.choice(held))
        case "push":
            _push(ground, base, author, chance)
        case "run":
            _start(ground, base, source)
        case _:
            _upload(ground, base, {(source, f"file-{uuid4().hex[:8]}.md"): author.write() for _ in range(chance.randint(1, 4))})


def _start(ground: Ground, base: Base, source: str) -> None:
    with contextlib.suppress(httpx.HTTPError):  # the last run of the round takes it all
        ground.client.http.post(f"/knowledge-bases/{base.id}/sources/{source}/run", timeout=10)


def _upload(ground: Ground, base: Base, texts: dict[Key, Text]) -> None:
    source = next(iter(texts))[0]
    parts = [("files", (name, text.bytes)) for (_, name), text in texts.items()]
    answer = ground.persist("POST", f"/knowledge-bases/{base.id}/sources/{source}/files", files=parts).json()
    assert not answer["rejected"], answer["rejected"]
    base.expected |= texts
    base.files |= {(source, row["file_name"]): row["file_id"] for row in answer["stored"]}


def _delete(ground: Ground, base: Base, key: Key) -> None:
    ground.persist("DELETE", f"/knowledge-bases/{base.id}/sources/{key[0]}/files/{base.files[key]}", accept=(404,))
    base.gone.append(base.expected.pop(key))


def _push(ground: Ground, base: Base, author: Author, chance: random.Random) -> None:
    held = sorted(key for key in base.expected if not key[0])
    key = chance.choice(held) if held and chance.random() < 0.5 else ("", f"text-{uuid4().hex[:8]}")
    text = author.revise(base.expected[key]) if key in base.expected else author.write()
    body = {"text": text.markdown, "document_name": key[1], "replace": True}
    ground.persist("POST", f"/knowledge-bases/{base.id}/ingest", json=body)
    base.expected[key] = text


def _settle(ground: Ground, figures: Figures, base: Base) -> None:
    """What was begun ends; then each source is run once more, so that what was uploaded last is in."""
    still = ground.settle(base.id, seconds=SETTLE_SECONDS)
    figures.count("stuck", f"open after {SETTLE_SECONDS} s: {still}", len(still))
    for source in base.sources.values():
        state = ground.run_to_end(base.id, source)
        if state is None:
            figures.count("stuck", f"a run of source {source} does not end: {ground.open_runs(base.id)}")
        elif state["status"] != "succeeded":
            figures.count("lost", f"the run {state['id']} after the kills ended {state['status']}: {state['error']} {state['counters']}")
    still = ground.settle(base.id, seconds=SETTLE_SECONDS)
    figures.count("stuck", f"open after the last run: {still}", len(still))
