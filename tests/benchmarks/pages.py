"""What comes out of real pages, and what it costs, beside plain trafilatura in the same run: lines of JSON.

python tests/benchmarks/pages.py [DIR]       # NAME.html.gz with NAME.json (main_content, with, without): scores of each page type
python tests/benchmarks/pages.py DIR         # a folder of .html files: milliseconds of CPU a page, stage by stage
"""

import argparse
import gzip
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from ingestion.extract import Limits, Served, extract  # noqa: E402

SAMPLE = ROOT.parent / "shared" / "data" / "documents" / "web_pages"
LIMITS = Limits(max_chars=1_000_000)
WARM_UP = 5
_WORD = re.compile(r"\w+")
_TARGET = re.compile(r"\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Page:
    name: str
    kind: str
    url: str
    body: bytes
    content: str
    wanted: list[str]
    unwanted: list[str]


def read_pages(folder: Path) -> Iterator[Page]:
    for packed in sorted(folder.glob("*.html.gz")):
        told = json.loads(packed.with_name(packed.name.removesuffix(".html.gz") + ".json").read_text())
        truth = told["ground_truth"]
        kind = told["_internal"]["page_type"]["primary"]
        body = gzip.decompress(packed.read_bytes())
        yield Page(packed.name.partition(".")[0], kind, told["url"], body, truth["main_content"], truth["with"], truth["without"])


def ours(page: Page) -> str:
    with tempfile.NamedTemporaryFile(suffix=".html") as file:
        file.write(page.body)
        file.flush()
        return extract(Path(file.name), name=page.name, declared_type="text/html", limits=LIMITS, served=Served(page.url)).markdown


def plain(page: Page) -> str:
    import trafilatura

    return trafilatura.extract(page.body, url=page.url, output_format="markdown", include_links=True, with_metadata=False) or ""


READERS: dict[str, Callable[[Page], str]] = {"lectern": ours, "trafilatura": plain}


def words(markdown: str) -> Counter[str]:
    return Counter(_WORD.findall(_TARGET.sub("]", markdown).lower()))


def score(page: Page, markdown: str) -> dict[str, float]:
    found, expected = words(markdown), words(page.content)
    common = (found & expected).total()
    letters = "".join(_WORD.findall(_TARGET.sub("]", markdown).lower()))

    def share(snippets: list[str]) -> float:
        return sum("".join(_WORD.findall(snippet.lower())) in letters for snippet in snippets) / max(1, len(snippets))

    return {
        "f1": 2 * common / max(1, found.total() + expected.total()),
        "recall": common / max(1, expected.total()),
        "with": share(page.wanted),
        "without_avoided": 1 - share(page.unwanted),
    }


def measure_quality(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """kind -> reader -> figures, the mean over its pages; "all" among the kinds."""
    scores: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for page in read_pages(folder):
        for reader, read in READERS.items():
            figures = score(page, read(page))
            for kind in (page.kind, "all"):
                scores[kind, reader].append(figures)
    means: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for (kind, reader), figures in scores.items():
        mean = {name: round(sum(each[name] for each in figures) / len(figures), 3) for name in figures[0]}
        means[kind][reader] = {"pages": len(figures)} | mean
    return means


def measure_time(files: list[Path]) -> dict[str, float]:
    """Milliseconds of CPU a page: the stages one by one, then the child's whole work, then plain trafilatura."""
    import trafilatura

    from ingestion.extract import html_main, html_markdown, html_metadata, html_page, html_shell, html_tree, language
    from ingestion.extract.child import answer
    from kb.providers.tokens import PACKAGED_MODEL

    chunk = {"settings": {}, "tokenizer": PACKAGED_MODEL, "reserve": 16}
    spent: Counter[str] = Counter()

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        result = work()
        spent[stage] += time.process_time() - started
        return result

    language.load_model()
    for path in files[:WARM_UP]:
        trafilatura.extract(path.read_bytes())
        answer(_request(path) | {"chunk": chunk})
    for path in files:
        decoded = timed("read", partial(html_tree.read_html, path))
        tree = timed("parse", partial(html_tree.parse_html, decoded.text))
        timed("links", partial(html_page.describe_page, tree, served=Served(f"http://127.0.0.1/{path.name}")))
        timed("metadata", partial(html_metadata.read_metadata, tree))
        marks = timed("shell", partial(html_shell.shell_marks, tree))
        timed("hidden", partial(html_tree.drop_hidden, tree))
        timed("shell", partial(html_shell.needs_javascript, marks, tree))
        region = timed("main", partial(html_main.main_text, tree))
        markdown = timed("markdown", partial(html_markdown.MarkdownWriter().write, region))
        timed("language", partial(language.detect_language, markdown))
        timed("child without passages", partial(answer, _request(path)))
        timed("child with passages", partial(answer, _request(path) | {"chunk": chunk}))
        timed("trafilatura", partial(trafilatura.extract, path.read_bytes(), output_format="markdown", include_links=True))
    return {stage: round(1000 * seconds / len(files), 2) for stage, seconds in spent.items()}


def _request(path: Path) -> dict[str, Any]:
    url = f"http://127.0.0.1/{path.name}"
    limits = {"max_seconds": 3600}  # of this process: it answers in place of a child
    return {"op": "extract", "path": str(path), "name": url, "declared_type": "text/html", "page": {"url": url}, "limits": limits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=SAMPLE)
    parser.add_argument("--limit", type=int, default=200, help="at most so many .html files, chosen by chance")
    arguments = parser.parse_args()
    files = sorted(arguments.path.glob("*.html"))
    if files:
        files = random.Random(1).sample(files, min(arguments.limit, len(files)))
        size = sum(path.stat().st_size for path in files) / len(files) / 1024
        print(json.dumps({"bench": "pages", "pages": len(files), "kib_a_page": round(size, 1), "ms_a_page": measure_time(files)}))
    for kind, readers in sorted(measure_quality(arguments.path).items()):
        for reader, figures in readers.items():
            print(json.dumps({"bench": "pages", "type": kind, "reader": reader} | figures), flush=True)


if __name__ == "__main__":
    main()
