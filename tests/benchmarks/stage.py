"""What the extract stage does a second, from stored bytes to committed rows, nothing embedded: lines of JSON.

python tests/benchmarks/stage.py [--parts files,pdf] [--files 5000] [--pages 2000]

`files`: many small files of a dozen formats. `pdf`: pages of text in files of 200 pages. The rest of the line is run as in production; the
worker that embeds is left out, so that its share of the processors is nobody's.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

import httpx  # noqa: E402
import psutil  # noqa: E402

from tests.client import Client  # noqa: E402
from tests.fleet import Fleet, look_past_rules, wait_for  # noqa: E402
from tests.installation import Installation, installation  # noqa: E402
from tests.samples.office import paragraph, word  # noqa: E402
from tests.samples.pdfs import text_pdf  # noqa: E402
from tests.samples.workbooks import workbook  # noqa: E402

PARTS = ("files", "pdf")
ROLES = ("web", "main", "extract", "beat")
PHRASE = """the pump valve pressure sensor turns opens before after operator checks line oil filter panel reads value when motor starts a
cold wind over water stones keep warm light falls between houses nobody asks where roads lead until rain comes"""
WORDS = PHRASE.split()
PAGES_PER_FILE = 200
UPLOADED_TOGETHER = 50
WAITING = "SELECT count(*) FROM ingestion_runitem WHERE run_id = %s AND stage IN ('found', 'fetched')"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--pages", type=int, default=2000)
    options = parser.parse_args()
    chance = random.Random(11)
    with installation(roles=ROLES) as installed:
        wait_for(lambda: is_up(installed.fleet), seconds=120, what="the web process")
        if "files" in options.parts.split(","):
            print(json.dumps(measure(installed, "files", dict(small_files(options.files, chance)))), flush=True)
        if "pdf" in options.parts.split(","):
            figures = measure(installed, "pdf", dict(long_pdfs(options.pages, chance)))
            figures["pages_per_s"] = round(options.pages / figures["seconds"], 1)
            figures["pages_per_s_and_core"] = round(options.pages / figures["cpu_s"], 1)
            print(json.dumps(figures), flush=True)


def is_up(fleet: Fleet) -> bool:
    try:
        return httpx.get(f"{fleet.url}/healthz", timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def measure(installed: Installation, part: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    """From the request for a run until every file of it is read or refused."""
    client, fleet = installed.client, installed.fleet
    source = {"name": "files", "type": "upload", "upload": {"max_files": 10_000}, "settings": {"max_content_length": 2_000_000}}
    kb = client.create_knowledge_base(part, sources=[source])
    stored = upload(client, kb, files)
    fleet.peak_mb.clear()
    with look_past_rules(installed.environment, autocommit=True) as rows:
        before, started = fleet.cpu_seconds(), time.monotonic()
        run = client.start(*kb)

        parent, parent_mb = psutil.Process(fleet.processes["extract"].pid), 0.0

        def is_read() -> bool:
            nonlocal parent_mb
            fleet.note_memory()
            parent_mb = max(parent_mb, parent.memory_info().rss / 1e6)
            found = rows.execute("SELECT count(*) FROM ingestion_runitem WHERE run_id = %s", [run]).fetchone()[0]  # type: ignore[index]
            return found >= stored and not rows.execute(WAITING, [run]).fetchone()[0]  # type: ignore[index]

        wait_for(is_read, seconds=3600, what="the last file", every=0.5)
        seconds = time.monotonic() - started
        spent = {name: now - before[name] for name, now in fleet.cpu_seconds().items()}
        failed = rows.execute("SELECT count(*) FROM ingestion_runitem WHERE run_id = %s AND verdict = 'failed'", [run]).fetchone()[0]  # type: ignore[index]
    client.call("POST", f"/runs/{run}/cancel")
    return {
        "bench": "extract_stage",
        "part": part,
        "files": stored,
        "failed": failed,
        "seconds": round(seconds, 1),
        "files_per_s": round(stored / seconds, 1),
        "cpu_s": round(sum(spent.values()), 1),
        "cpu_ms_per_file": {name: round(1000 * cost / stored, 2) for name, cost in spent.items()},
        "peak_rss_mb": {name: round(fleet.peak_mb[name]) for name in ("main", "extract")} | {"parent": round(parent_mb)},
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def upload(client: Client, kb: tuple[str, str], files: Mapping[str, bytes]) -> int:
    names, stored = list(files), 0
    for start in range(0, len(names), UPLOADED_TOGETHER):
        stored += len(client.upload(*kb, {name: files[name] for name in names[start : start + UPLOADED_TOGETHER]})["stored"])
    return stored


def small_files(number: int, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    for position in range(number):
        ending = ENDINGS[position % len(ENDINGS)]
        text = sentences(chance, 12)
        yield f"note-{position}.{ending}", MAKERS[ending](f"Note {position}", text)


def long_pdfs(pages: int, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    for number in range(pages // PAGES_PER_FILE):
        yield f"book-{number}.pdf", text_pdf(["\n".join(sentences(chance, 40)) for _ in range(PAGES_PER_FILE)], title=f"Book {number}")


def sentences(chance: random.Random, number: int) -> list[str]:
    return [" ".join(chance.choices(WORDS, k=chance.randint(6, 11))).capitalize() + "." for _ in range(number)]


def _page(title: str, text: list[str]) -> bytes:
    paragraphs = "".join(f"<p>{sentence}</p>" for sentence in text)
    return f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>{paragraphs}</main></body></html>".encode()


MAKERS = {
    "txt": lambda title, text: "\n".join([title, *text]).encode(),
    "md": lambda title, text: "\n\n".join([f"# {title}", *text]).encode(),
    "html": _page,
    "csv": lambda title, text: "\n".join(["number,sentence", *(f'{n},"{each}"' for n, each in enumerate(text))]).encode(),
    "json": lambda title, text: json.dumps({"title": title, "text": text}).encode(),
    "docx": lambda title, text: word("".join(paragraph(each) for each in [title, *text])),
    "xlsx": lambda title, text: workbook({title: [["number", "sentence"], *([n, each] for n, each in enumerate(text))]}),
    "pdf": lambda title, text: text_pdf(["\n".join([title, *text])], title=title),
}
ENDINGS = tuple(MAKERS)


if __name__ == "__main__":
    main()
