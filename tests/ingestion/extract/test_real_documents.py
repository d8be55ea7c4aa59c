"""The real documents of ../shared/data: right outcomes, and how many of the expected words come out."""

import re
from collections import Counter
from pathlib import Path

import pytest

from config.errors import ExtractionError
from ingestion.extract import Extracted
from ingestion.extract.sandbox import Sandbox
from tests.benchmarks import extract as benchmark

_WORD = re.compile(r"\w+")
_TARGET = re.compile(r"\]\([^)]*\)")


def words(markdown: str) -> Counter[str]:
    return Counter(_WORD.findall(_TARGET.sub("]", markdown).lower()))


def recall(expected: str, markdown: str) -> float:
    wanted = words(expected)
    return (wanted & words(markdown)).total() / max(1, wanted.total())


def run(sandbox: Sandbox, path: Path, **limits: object) -> Extracted:
    return Extracted.from_json(sandbox.run({"op": "extract", "path": str(path), "name": path.name, "limits": limits})["extracted"])


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("invalid.xlsx", "damaged", "damaged: it is an archive without the parts"),
        ("issue9105_other.pdf", "damaged", "damaged"),
        ("issue15893_reduced.pdf", "encrypted", "needs a password"),
        ("protected_passtika.xlsx", "encrypted", "needs a password"),
        ("poc-xmlbomb.xlsx", "damaged", "defines entities"),
    ],
)
def test_awkward_files_are_refused(shared_documents, sandbox, name, reason, words):
    with pytest.raises(ExtractionError, match=words) as caught:
        run(sandbox, shared_documents / "awkward" / name)
    assert (caught.value.reason, caught.value.retires) == (reason, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("encrypted-attachment.pdf", "Example"),
        ("bug1978317.pdf", "aaaa"),
        ("poppler-395-0-fuzzed.pdf", "Signed by: Phil Smith"),
        ("ExternalEntityInText.docx", "POI web site"),
        ("sample.strict.xlsx", "| consectetuer | 666 |"),
    ],
)
def test_awkward_files_are_read(shared_documents, sandbox, name, text):
    assert text in run(sandbox, shared_documents / "awkward" / name).markdown


@pytest.mark.parametrize(("folder", "least"), [("docx", 0.95), ("pptx", 0.92)])
def test_office_words(shared_documents, sandbox, record_property, folder, least):
    """As tests/benchmarks/extract.py counts them."""
    found = {}
    for path in sorted((shared_documents / folder).glob(f"*.{folder}")):
        expected, text = benchmark.words(benchmark.truth_of(path) or ""), benchmark.words(run(sandbox, path, comments=True).markdown)
        found[path.name] = (benchmark.word_f1(expected, text), benchmark.order(expected, text))
    record_property("found", found)
    assert sum(f1 for f1, _ in found.values()) / len(found) > least, found
    assert sum(order for _, order in found.values()) / len(found) > 0.88, found


def test_order_is_the_longest_common_subsequence():
    assert benchmark.order(list("abcbdab"), list("bdcaba")) == 4 / 7
    assert benchmark.order([], []) == 1
    assert benchmark.order(list("ab"), []) == 0


def test_html_words(shared_documents, sandbox, record_property):
    found = {}
    for path in sorted((shared_documents / "html").glob("*.html")):
        found[path.name] = recall(Path(f"{path}.expected.md").read_text(), run(sandbox, path).markdown)
    record_property("recall", found)
    # The expected text of the encyclopedia page holds its menus, languages and categories.
    assert found.pop("wiki_duck.html") > 0.8
    assert min(found.values()) > 0.9, found


def test_pdf_words(shared_documents, sandbox, record_property):
    found = {}
    for path in sorted((shared_documents / "pdf_text").glob("*.pdf")):
        found[path.name] = recall(Path(f"{path}.expected.txt").read_text("utf-8-sig"), run(sandbox, path).markdown)
    record_property("recall", found)
    assert sum(found.values()) / len(found) > 0.88, found


@pytest.mark.parametrize("name", ["code_and_formula.pdf", "multi_page.pdf", "normal_4pages.pdf", "right_to_left_01.pdf"])
def test_pdf_pages(shared_documents, sandbox, name):
    extracted = run(sandbox, shared_documents / "pdf" / name)
    assert [span.page for span in extracted.pages] == list(range(1, extracted.metadata["pages"] + 1))
    assert all(extracted.markdown[span.start : span.end].strip() for span in extracted.pages)
