"""What comes out of real files, each in the sandbox as a worker reads it, against ground truth: a line of JSON a format.

python tests/benchmarks/extract.py DIR [--format docx …] [--file]

DIR holds a folder a format, or is one. A file NAME has its truth in NAME.expected.md or NAME.expected.txt; NAME.html.gz in the JSON beside
it (main_content, with, without). word_f1 compares multisets of words, order is their longest common subsequence over the longer side,
baseline_f1 is what the best library alone gives in the same run (pdfium or pypdf, trafilatura). `wrong` lists files of `awkward` that
ended otherwise than they have to.
"""

import argparse
import json
import re
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from config.errors import ExtractionError  # noqa: E402
from ingestion.extract import Limits  # noqa: E402
from ingestion.extract.sandbox import Sandbox  # noqa: E402
from tests.benchmarks.pages import Page, plain, read_pages, score  # noqa: E402

SAMPLE = ROOT.parent / "shared" / "data" / "documents"
# The truth of some files has their comments; a worker reads those where its source says so.
LIMITS = Limits(max_chars=2_000_000, comments=True)
TRUTHS = (".expected.md", ".expected.txt")
# Of the child, not of the file: a worker that saw one of these has lost a process.
DEATHS = frozenset({"crashed", "internal", "time_limit", "memory_limit"})
READ = "read"
# How the files of `awkward` may end: READ, or a reason of the refusal.
OUTCOMES: dict[str, frozenset[str]] = {
    name: frozenset(reasons.split())
    for name, reasons in {
        "ExternalEntityInText.docx": "read",
        "bug1978317.pdf": "read time_limit",
        "encrypted-attachment.pdf": "read",
        "invalid.xlsx": "read damaged unsupported empty",
        "issue9105_other.pdf": "read damaged",
        "poppler-395-0-fuzzed.pdf": "read damaged",
        "issue15893_reduced.pdf": "encrypted",
        "protected_passtika.xlsx": "encrypted",
        "poc-xmlbomb.xlsx": "damaged too_large unsupported",
        "sample.strict.xlsx": "read unsupported",
        "scan-bad.pdf": "read no_text no_engine",
        "silent_1s.wav": "no_text empty unsupported no_engine",
    }.items()
}
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Result:
    """One file; a figure is None where there is nothing to compare with."""

    file: str
    outcome: str
    seconds: float
    peak_rss_mb: float
    word_f1: float | None = None
    order: float | None = None
    baseline_f1: float | None = None
    snippets: dict[str, float] = field(default_factory=dict)
    message: str = ""


def words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text.replace("\ufeff", "")).casefold())


def word_f1(expected: list[str], found: list[str]) -> float:
    common = (Counter(expected) & Counter(found)).total()
    return 2 * common / (len(expected) + len(found)) if expected or found else 1.0


def order(expected: list[str], found: list[str]) -> float:
    """The longest common subsequence, by one integer whose bits are the positions of one side (Hyyrö 2004)."""
    if not expected or not found:
        return float(expected == found)
    at: dict[str, int] = {}
    for position, word in enumerate(expected):
        at[word] = at.get(word, 0) | 1 << position
    full = row = (1 << len(expected)) - 1
    for word in found:
        common = row & at.get(word, 0)
        row = (row + common | row - common) & full
    return (full ^ row).bit_count() / max(len(expected), len(found))


def truth_of(path: Path) -> str | None:
    for suffix in TRUTHS:
        if (expected := path.with_name(path.name + suffix)).exists():
            return expected.read_text("utf-8-sig")
    return None


class Bench:
    """One child reads them all, as in a worker; its greatest memory is set back before each file."""

    def __init__(self) -> None:
        self.sandbox = Sandbox(size=1)
        self.sandbox.warm()

    def read(self, path: Path, request: dict[str, Any]) -> tuple[Result, str]:
        _forget_peak(self.sandbox)
        started = time.perf_counter()
        markdown, outcome, message = "", READ, ""
        try:
            reply = self.sandbox.run({"op": "extract", "path": str(path), "name": path.name, "limits": asdict(LIMITS)} | request)
            markdown = reply["extracted"]["markdown"]
        except ExtractionError as error:
            outcome, message = error.reason, error.message
        seconds = time.perf_counter() - started
        return Result(path.name, outcome, round(seconds, 3), _peak_mb(self.sandbox), message=message), markdown

    def measure(self, path: Path, *, format: str) -> Result:
        result, markdown = self.read(path, {})
        expected = truth_of(path)
        if expected is not None:
            wanted, found = words(expected), words(markdown)
            result.word_f1, result.order = word_f1(wanted, found), order(wanted, found)
            scores = [word_f1(wanted, words(text)) for text in (read(path) for read in BASELINES.get(format, ())) if text is not None]
            result.baseline_f1 = max(scores, default=None)
        return result

    def measure_page(self, page: Page) -> Result:
        with tempfile.NamedTemporaryFile(suffix=".html") as file:
            file.write(page.body)
            file.flush()
            path = Path(file.name)
            result, markdown = self.read(path, {"name": page.name, "declared_type": "text/html", "page": {"url": page.url}})
        ours = score(page, markdown)
        result.file = f"{page.name}.html.gz"
        result.word_f1, result.order = ours["f1"], order(words(page.content), words(markdown))
        result.baseline_f1 = score(page, plain(page))["f1"]
        result.snippets = {"with": ours["with"], "without": ours["without_avoided"]}
        return result


def _forget_peak(sandbox: Sandbox) -> None:
    sandbox.peak_rss_mb = 0.0
    for pid in sandbox.pids():
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak_mb(sandbox: Sandbox) -> float:
    """What the kernel saw; where it does not say, or the child is gone, what the sandbox saw."""
    for pid in sandbox.pids():
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024, 1)
    return round(sandbox.peak_rss_mb, 1)


def _pdfium(path: Path) -> str | None:
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(path)
        return "\n".join(page.get_textpage().get_text_range() for page in document)
    except pdfium.PdfiumError:
        return None


def _pypdf(path: Path) -> str | None:
    try:
        from pypdf import PdfReader
    except ImportError:
        return None
    try:
        return "\n".join(page.extract_text() for page in PdfReader(path).pages)
    except Exception:  # whatever a damaged file leads to: it is only compared with
        return None


def _trafilatura(path: Path) -> str | None:
    import trafilatura

    return trafilatura.extract(path.read_bytes(), output_format="markdown", include_links=True, with_metadata=False) or ""


BASELINES: dict[str, tuple[Callable[[Path], str | None], ...]] = {
    "pdf": (_pdfium, _pypdf),
    "pdf_text": (_pdfium, _pypdf),
    "html": (_trafilatura,),
}


def summarise(format: str, results: list[Result]) -> dict[str, Any]:
    def mean(values: Iterator[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return round(sum(known) / len(known), 4) if known else None

    line = {
        "bench": "extract",
        "format": format,
        "files": len(results),
        "word_f1": mean(result.word_f1 for result in results),
        "order": mean(result.order for result in results),
        "baseline_f1": mean(result.baseline_f1 for result in results),
        "with": mean(result.snippets.get("with") for result in results),
        "without": mean(result.snippets.get("without") for result in results),
        "seconds": round(sum(result.seconds for result in results), 3),
        "peak_rss_mb": max((result.peak_rss_mb for result in results), default=0.0),
        "refused": sum(result.outcome not in DEATHS | {READ} for result in results),
        "crashed": sum(result.outcome in DEATHS for result in results),
    }
    if judged := [result for result in results if result.file in OUTCOMES]:
        line["wrong"] = [result.file for result in judged if result.outcome not in OUTCOMES[result.file]]
    return line


def measure_folder(bench: Bench, folder: Path) -> list[Result]:
    if any(folder.glob("*.html.gz")):
        return [bench.measure_page(page) for page in read_pages(folder)]
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.endswith(TRUTHS)]
    return [bench.measure(path, format=folder.name) for path in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=SAMPLE)
    parser.add_argument("--format", nargs="*", help="only these folders")
    parser.add_argument("--file", action="store_true", help="a line for each file, too")
    arguments = parser.parse_args()
    folders = sorted(each for each in arguments.path.iterdir() if each.is_dir()) or [arguments.path]
    bench = Bench()
    try:
        for folder in folders:
            if arguments.format and folder.name not in arguments.format:
                continue
            results = measure_folder(bench, folder)
            for result in results if arguments.file else []:
                print(json.dumps(_file_line(folder.name, result)), flush=True)
            print(json.dumps(summarise(folder.name, results)), flush=True)
    finally:
        bench.sandbox.close()


def _file_line(format: str, result: Result) -> dict[str, Any]:
    line = asdict(result)
    snippets = line.pop("snippets")
    figures = {name: round(value, 4) if isinstance(value, float) else value for name, value in (line | snippets).items()}
    return {"bench": "extract", "format": format} | figures


if __name__ == "__main__":
    main()
