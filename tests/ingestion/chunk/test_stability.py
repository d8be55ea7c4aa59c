"""A changed paragraph changes few passages, wherever it is and whatever happens to it."""

import random
import re
from collections import Counter

import pytest

from ingestion.chunk import ChunkSettings, chunk

WORDS = re.compile(r"\w+|[^\w\s]")
VOCABULARY = [
    f"{first}{last}"
    for first in ("ab", "con", "de", "mo", "per", "sta", "tri")
    for last in ("cile", "dure", "lant", "mens", "nory", "rate")
]


class Offsets:
    def count(self, text: str) -> int:
        return len(WORDS.findall(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in WORDS.finditer(text)]


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(VOCABULARY, k=chance.randint(8, 22))).capitalize() + "."


def paragraph(chance: random.Random) -> str:
    return " ".join(sentence(chance) for _ in range(chance.randint(2, 7)))


def hundred_pages(chance: random.Random, *, headings: bool) -> list[str]:
    """About 50,000 words."""
    return [f"## Section {index}" if headings and index % 25 == 0 else paragraph(chance) for index in range(750)]


def edited(chance: random.Random, text: str, edit: str) -> str:
    words = text.split()
    at = chance.randrange(len(words))
    if edit == "word":
        words[at] = "mended"
    elif edit == "sentence":
        words[at:at] = sentence(chance).split()
    elif edit == "shorter":
        del words[len(words) // 2 :]
    else:
        return paragraph(chance)
    return " ".join(words)


def texts(paragraphs: list[str]) -> Counter:
    markdown = "\n\n".join(paragraphs)
    passages = chunk(markdown, settings=ChunkSettings("structure", 222, 17, 120), count=Offsets())
    return Counter((passage.heading_path, markdown[passage.start : passage.end]) for passage in passages)


@pytest.mark.parametrize("headings", [True, False])
@pytest.mark.parametrize("edit", ["word", "sentence", "shorter", "other"])
def test_one_edit_changes_at_most_three_passages(headings, edit):
    chance = random.Random(f"{headings} {edit}")
    paragraphs = hundred_pages(chance, headings=headings)
    before = texts(paragraphs)
    assert before.total() > 250
    for _ in range(8):
        after = list(paragraphs)
        at = chance.choice([index for index, text in enumerate(paragraphs) if not text.startswith("#")])
        after[at] = edited(chance, after[at], edit)
        assert 1 <= (texts(after) - before).total() <= 3


@pytest.mark.parametrize("headings", [True, False])
def test_an_inserted_and_a_removed_paragraph_move_nothing_else(headings):
    chance = random.Random(7)
    paragraphs = hundred_pages(chance, headings=headings)
    before = texts(paragraphs)
    assert (texts([*paragraphs[:333], paragraph(chance), *paragraphs[333:]]) - before).total() <= 3
    assert (texts([*paragraphs[:333], *paragraphs[334:]]) - before).total() <= 3
