"""The real tables of ../shared/data: how many of the expected words come out, and no others."""

import re
import time
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from ingestion.extract import Limits
from ingestion.extract.tabular import read_sheets


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", unicodedata.normalize("NFKC", text.replace("\ufeff", "")).casefold()))


def word_f1(expected: str, found: str) -> float:
    wanted, got = words(expected), words(found)
    return 2 * (wanted & got).total() / (wanted.total() + got.total())


@pytest.mark.parametrize("kind", ["xlsx", "csv"])
def test_words(shared_documents, read, kind, record_property):
    found = {}
    for path in sorted((shared_documents / kind).glob(f"*.{kind[:3]}*")):
        if path.suffix != ".md":
            found[path.name] = word_f1(Path(f"{path}.expected.md").read_text(), read(path.read_bytes(), name=path.name).markdown)
    record_property("word_f1", found)
    assert min(found.values()) > 0.97, found


def test_what_a_sheet_says_of_its_size_is_not_believed(shared_documents):
    path = shared_documents / "xlsx" / "xlsx_04_inflated.xlsx"
    started = time.monotonic()
    first = next(read_sheets(path, format="xlsx", name=path.name, limits=Limits()))
    assert (first.header, len(list(first.rows))) == (("first", "second", "third"), 6)
    assert time.monotonic() - started < 2
