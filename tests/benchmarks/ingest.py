"""Chunks per second of the whole pipeline beside the bare embedder on the same texts, in one run; then a rerun, then an edit.

python tests/benchmarks/ingest.py [PATH]        # a folder of files; default: cranfield and cisi of ../shared/data/ir
"""

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from config.embedded.postgres import find_server  # noqa: E402
from tests.client import Client  # noqa: E402
from tests.fleet import Fleet, cpu_seconds  # noqa: E402
from tests.installation import Installation, installation  # noqa: E402

CORPORA = ("cranfield", "cisi")
BARE = """
import json, sys, time
from pathlib import Path
from kb.providers import ModelSpec, Role, embed, load_provider
texts = json.loads(Path(sys.argv[1]).read_text())
spec = ModelSpec(name="bench", provider="local", model="all-MiniLM-L6-v2", dimension=384, max_input_tokens=256)
provider = load_provider(spec, threads=int(sys.argv[2]) or None)
embed(provider, spec, texts[:64], Role.DOCUMENT)
started = time.monotonic()
for start in range(0, len(texts), 256):
    embed(provider, spec, texts[start:start + 256], Role.DOCUMENT)
print(time.monotonic() - started)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path)
    parser.add_argument("--limit", type=int, help="at most so many files")
    parser.add_argument("--threads", type=int, default=0, help="threads of the embedder, in the pipeline and bare (default: every core)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = arguments.path or write_corpora(Path(folder))
        files = sorted(path for path in source.rglob("*") if path.is_file())[: arguments.limit]
        if not files:
            sys.exit(f"There are no files in {source}.")
        print(json.dumps(measure(files, Path(folder), threads=arguments.threads)), flush=True)


def write_corpora(folder: Path) -> Path:
    """The default corpus as files: title and text of each document."""
    data = ROOT.parent / "shared" / "data" / "ir"
    if not data.exists():
        sys.exit(f"The default corpus is not there ({data}). Give a folder of files.")
    target = folder / "corpus"
    target.mkdir()
    for name in CORPORA:
        for line in (data / name / "corpus.jsonl").read_text().splitlines():
            entry = json.loads(line)
            (target / f"{name}-{entry['_id']}.md").write_text(f"# {entry['title'].strip() or entry['_id']}\n\n{entry['text']}\n")
    return target


def expected_texts(files: list[Path]) -> list[str]:
    """What the pipeline will embed of Markdown and text files, by its own pure functions."""
    from ingestion.chunk import ChunkSettings, chunk
    from ingestion.chunk.budget import resolve_budget
    from ingestion.chunk.context import contextual_text
    from ingestion.extract.base import Limits
    from ingestion.extract.extraction import extract
    from kb.providers.tokens import PACKAGED_MODEL, token_counter_for

    counter = token_counter_for(PACKAGED_MODEL)
    budget = resolve_budget(target="auto", overlap=0.08, max_input_tokens=256, special_tokens=counter.special, prefix_tokens=0)
    settings = ChunkSettings("structure", budget.target_tokens, budget.overlap_tokens, 120)
    texts = []
    for path in files:
        extracted = extract(path, name=path.name, declared_type=None, limits=Limits())
        for passage in chunk(extracted.markdown, settings=settings, count=counter):
            text = extracted.markdown[passage.start : passage.end]
            texts.append(contextual_text(extracted.title, passage.heading_path, text, count=counter.count))
    return texts


def bare_seconds(texts: list[str], folder: Path, *, threads: int) -> float:
    """The embedder alone in a process of its own, with the pipeline's backend and threads."""
    import subprocess

    path = folder / "texts.json"
    path.write_text(json.dumps(texts))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(path), str(threads)], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return float(done.stdout.strip().splitlines()[-1])


def measure(files: list[Path], folder: Path, *, threads: int) -> dict[str, object]:
    texts = expected_texts(files)
    with installation(LECTERN_EMBED_THREADS=str(threads)) as installed:
        before = bare_seconds(texts, folder, threads=threads)
        fleet, client = installed.fleet, installed.client
        with watched(fleet):
            knowledge_base, source = client.create_knowledge_base("bench", chunking={"target_tokens": "auto"})
            refuse_hashing(client, knowledge_base)
            stored = client.upload_all(knowledge_base, source, files)
            web_mb = fleet.peak_mb["web"]
            spent = cpu(installed)
            seconds, state = client.timed_ingest(knowledge_base, source)
            spent = {name: now - spent[name] for name, now in cpu(installed).items()}
            counters = state["counters"]
            after = bare_seconds(texts, folder, threads=threads)
            again, rerun = client.timed_ingest(knowledge_base, source)
            edit = edit_embeddings(client)
            client.search(knowledge_base, "How does heat flow in a boundary layer?")
            time.sleep(1)
    chunks = counters["chunks"]
    bare = 2 * len(texts) / (before + after)
    return {
        "bench": "ingest",
        "threads": threads or os.cpu_count(),
        "documents": stored,
        "ingested": counters["ingested"],
        "chunks": chunks,
        "seconds": round(seconds, 1),
        "chunks_per_s": round(chunks / seconds, 1),
        "bare_texts": len(texts),
        "bare_chunks_per_s": round(bare, 1),
        "bare_before_s": round(before, 1),
        "bare_after_s": round(after, 1),
        "ratio": round(chunks / seconds / bare, 3),
        "cpu_ms_per_chunk": {name: round(1000 * cost / chunks, 2) for name, cost in spent.items()},
        "rerun_embeddings": rerun["counters"]["embeddings_computed"],
        "rerun_share": round(again / seconds, 4),
        "edit_embeddings": edit,
        "peak_rss_mb": {
            "web_before_query": round(web_mb),
            "web": round(fleet.peak_mb["web"]),
            "crawl": round(fleet.peak_mb["main"]),
            "extract": round(fleet.peak_mb["extract"]),
            "embed": round(fleet.peak_mb["embed"]),
        },
    }


def cpu(installed: Installation) -> dict[str, float]:
    """Processor seconds of every part so far: on a busy machine they say more than the clock."""
    postgres = find_server(Path(installed.environment["LECTERN_HOME"]))
    return {**installed.fleet.cpu_seconds(), "postgres": cpu_seconds(postgres.pid) if postgres else 0.0}


class watched:
    """Note the fleet's memory twice a second while the block runs."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.done = fleet, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self.done.wait(0.5):
            self.fleet.note_memory()

    def __enter__(self) -> None:
        self.fleet.note_memory()
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


def refuse_hashing(client: Client, knowledge_base: str) -> None:
    model = client.call("GET", f"/knowledge-bases/{knowledge_base}")["document"]["embedding_model"]
    if model == "hashing":
        sys.exit("The `hashing` model measures nothing; use a real one.")


def edit_embeddings(client: Client) -> int:
    """Embeddings that one changed paragraph of a 100-page document costs: the most of a word, a sentence and a whole paragraph."""
    source = {"name": "files", "type": "upload", "settings": {"max_content_length": 1_000_000}}
    knowledge_base, source = client.create_knowledge_base("edit", sources=[source])
    chance = random.Random(7)
    parts = generated_document(chance)
    client.upload(knowledge_base, source, {"manual.md": "\n\n".join(parts).encode()})
    client.ingest(knowledge_base, source, seconds=300)
    paragraphs = [number for number, part in enumerate(parts) if not part.startswith("#")]
    changes = (
        lambda text: text.replace("valve", "membrane", 1),
        lambda text: text + " One more sentence was added to this paragraph.",
        lambda text: "Everything in this paragraph is new. It says what the old one did not say, at about the same length. " * 3,
    )
    costs = []
    for change in changes:
        place = chance.choice(paragraphs)
        parts[place] = change(parts[place]).strip()
        client.upload(knowledge_base, source, {"manual.md": "\n\n".join(parts).encode()})
        costs.append(client.ingest(knowledge_base, source)["counters"]["embeddings_computed"])
    return max(costs)


def generated_document(chance: random.Random) -> list[str]:
    """About 100 pages of paragraphs, with a heading every other page."""
    words = [
        "the",
        "pump",
        "valve",
        "pressure",
        "sensor",
        "turns",
        "opens",
        "before",
        "after",
        "operator",
        "checks",
        "line",
        "oil",
        "filter",
        "panel",
        "reads",
        "value",
        "when",
        "motor",
        "starts",
    ]

    def sentence() -> str:
        return " ".join(chance.choice(words) for _ in range(chance.randint(8, 20))).capitalize() + "."

    paragraphs = []
    for page in range(100):
        if page % 2 == 0:
            paragraphs.append(f"## Section {page // 2 + 1}: {chance.choice(words)} and {chance.choice(words)}")
        paragraphs += [" ".join(sentence() for _ in range(chance.randint(3, 7))) for _ in range(5)]
    return paragraphs


if __name__ == "__main__":
    main()
