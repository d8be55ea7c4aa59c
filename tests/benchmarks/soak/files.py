"""Damaged files of every kind, uploaded and run: each is refused with a reason, fails with one, or is ingested; no worker dies of it."""

import random
import zlib
from collections import Counter
from collections.abc import Callable
from functools import cache

from tests.benchmarks.soak.ground import Bounds, Figures, Ground, say
from tests.samples.pdfs import table_pdf, text_pdf

KEYS = ("stuck", "lost", "errors")
FILES = 25  # of a round
PROSE = "the pump valve pressure sensor turns opens before after operator checks line oil filter panel reads value"


@cache
def samples() -> dict[str, bytes]:
    """Sound files, by the ending of their names."""
    prose = "\n\n".join(f"{PROSE} {PROSE} {PROSE} {number}." for number in range(12))
    html = "".join(f"<h2>Part {number}</h2><p>{PROSE}</p><table><tr><td>{number}</td><td>x</td></tr></table>" for number in range(12))
    return {
        "md": f"# Title\n\n{prose}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint('x')\n```\n".encode(),
        "txt": prose.encode("utf-16"),
        "text": prose.encode("utf-16-be"),
        "html": f"<!doctype html><html><head><title>T</title></head><body><main>{html}</main></body></html>".encode(),
        "htm": f"<html><head><meta charset=windows-1252></head><body><p>Größe {prose}</p></body></html>".encode("cp1252"),
        "pdf": text_pdf([prose[:1500], prose[1500:3000]]),
        "PDF": table_pdf("before", [["a", "b"], ["1", "2"]] * 10, "after"),
        "bin": zlib.compress(prose.encode()) * 20,
        "csv": b"a;b\n1;2\n" * 200,
    }


def damage(content: bytes, chance: random.Random) -> bytes:
    """The bytes with one thing done to them."""
    place = chance.randrange(len(content))
    other = chance.choice(list(samples().values()))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: content,
        lambda: content[:place],
        lambda: content[place:],
        lambda: _flipped(content, chance, chance.choice((1, 5, 50, 500))),
        lambda: content[:place] + bytes(chance.randrange(256) for _ in range(200)) + content[place:],
        lambda: content[:place] + b"\x00" * chance.choice((1, 10, 5000)) + content[place:],
        lambda: content[:place] + other[chance.randrange(len(other)) :],
        lambda: content * chance.choice((2, 10)),
        lambda: bytes(chance.randrange(256) for _ in range(chance.choice((1, 100, 20_000)))),
        lambda: content.replace(b"obj", b"obx", chance.choice((1, 2, 100))),
        lambda: content.replace(b"/Length ", b"/Length 9999"),
        lambda: content.replace(b"<p>", b"<div>" * 3000).replace(b"<h2>", b"<h2 x='"),
        lambda: b"\xff\xfe" + content,
        lambda: content.decode("latin-1").encode("utf-8") + b"\xed\xa0\x80\xf0\x9f",
        lambda: b"[" * 20_000 + b"](" * 20_000 + content,
        lambda: b"> " * 30_000 + content,
        lambda: b"| a " * 5000 + b"\n" + b"|---" * 5000 + b"\n" + content,
        lambda: ("\u202e\u200b" * 5000 + "語" * 20_000).encode() + content,
        lambda: b"word" * 100_000,
    )
    return chance.choice(ways)()


def _flipped(content: bytes, chance: random.Random, number: int) -> bytes:
    changed = bytearray(content)
    for _ in range(number):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def soak(ground: Ground, figures: Figures, bounds: Bounds, chance: random.Random, *, files: int = FILES) -> None:
    knowledge_base, sources = ground.make_knowledge_base(ground.register_model())
    source = sources["files"]
    path = f"/knowledge-bases/{knowledge_base}/sources/{source}"
    outcomes: Counter[str] = Counter()
    while bounds.allow(figures.rounds):
        say(f"files: round {figures.rounds}")
        sent = {}
        for number in range(files):
            ending, content = chance.choice(list(samples().items()))
            name = f"{figures.rounds}-{number}.{chance.choice((ending, ending, ending, chance.choice(list(samples()))))}"
            sent[name] = damage(content, chance)
        outcomes["refused"] += _upload(ground, figures, path, sent)
        state = ground.run_to_end(knowledge_base, source, seconds=240)
        figures.count("stuck", f"the run does not end: {ground.open_runs(knowledge_base)}", state is None)
        if state:
            figures.count("errors", f"the run was abandoned: {state['error']}", state["error"] == "Run abandoned")
            outcomes.update(_judge(ground, figures, state["id"], sent))
        _fleet_lives(ground, figures)
        ground.persist("POST", "/search", json={"query": "pump valve", "knowledge_bases": [knowledge_base]})
        for row in list(ground.pages(f"{path}/files")):
            ground.persist("DELETE", f"{path}/files/{row['file_id']}", accept=(404,))
        figures.rounds += 1
    figures.notes |= {"outcomes": dict(sorted(outcomes.items()))}


def _upload(ground: Ground, figures: Figures, path: str, sent: dict[str, bytes]) -> int:
    """How many were refused at once; each of them with a reason."""
    refused = 0
    names = list(sent)
    for start in range(0, len(names), 10):
        parts = [("files", (name, sent[name])) for name in names[start : start + 10]]
        answer = ground.persist("POST", f"{path}/files", files=parts, accept=(400,)).json()
        for row in answer["rejected"]:
            figures.count("errors", f"{row['file_name']} was refused without a reason", not row["reason"].strip())
            refused += 1
            del sent[row["file_name"]]
        missing = {name for name in names[start : start + 10] if name in sent} - {row["file_name"] for row in answer["stored"]}
        figures.count("lost", f"neither stored nor refused: {sorted(missing)}", len(missing))
    return refused


def _judge(ground: Ground, figures: Figures, run: str, sent: dict[str, bytes]) -> Counter[str]:
    """Each stored file has a verdict, each failure a reason and words."""
    verdicts = {row["name"]: row for row in ground.pages(f"/runs/{run}/documents")}
    outcomes: Counter[str] = Counter()
    for name, content in sent.items():
        row = verdicts.get(name)
        if row is None or not row["verdict"]:
            figures.count("lost", f"{name} has no verdict in run {run}")
            continue
        outcomes[f"{row['verdict']} {row['reason'] or ''}".strip()] += 1
        bad = row["verdict"] == "failed" and not (row["reason"] and row["error"])
        figures.count("errors", f"{name} failed without words: {row}", bad)
        deadly = row["reason"] in ("internal", "worker_died", "crashed")
        figures.count("errors", f"{name} ({len(content)} bytes, {content[:60]!r}): {row['reason']}: {row['error']}", deadly)
    return outcomes


def _fleet_lives(ground: Ground, figures: Figures) -> None:
    for name in list(ground.fleet.processes):
        if not ground.fleet.is_alive(name):
            figures.count("errors", f"{name} ended: {ground.fleet.tail(name, 5)}")
            ground.fleet.start(name)
