"""Markdown that a quadratic or recursive chunker would not survive."""

import re
import time

import pytest

from ingestion.chunk import CHUNK_STRATEGIES, ChunkSettings, chunk

TOKEN = re.compile(r"\w{1,8}|[^\w\s]")
MANY = 100_000
HOSTILE = {
    "headings": "#\n" * MANY,
    "titled headings": "# a\n" * MANY,
    "quotes": ">\n" * MANY,
    "deep quote": ">" * MANY + " x",
    "pipes": "|\n" * MANY,
    "delimiters": "|---|\n" * MANY,
    "nested items": "".join(" " * (index % 500) + "- x\n" for index in range(2000)),
    "items": "- a\n\n" * MANY,
    "fences": "```\n" * MANY,
    "ticks": "`" * MANY,
    "dots": "." * MANY,
    "apart": ". " * MANY,
    "empty lines": "a" + "\n" * MANY * 5 + "b",
    "spaces": "a" + " " * MANY * 5 + "b",
    "runs of spaces": "".join("a" + " " * (index % 700) for index in range(1500)),
    "one word": "a" * MANY * 5,
    "base64": "aB3/+x9Z" * 50_000,
    "chinese": "中文字" * 50_000,
    "marks": "e" + "\u0301" * MANY,
    "joined emoji": "👩\u200d" * 50_000,
    "tags": "<div>\n" * MANY,
    "comments": "<!--\n" * MANY,
    "setext": "a\n===\n" * 50_000,
    "hashes": "# " + "#" * MANY,
    "brackets": "[" * MANY,
}


class Offsets:
    def count(self, text: str) -> int:
        return len(TOKEN.findall(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in TOKEN.finditer(text)]


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_text_only(name):
    markdown = HOSTILE[name]
    started = time.process_time()
    passages = chunk(markdown, settings=ChunkSettings("structure", 222, 17, 120), count=Offsets())
    # Usual is a fifth of this; a quadratic step takes minutes.
    assert time.process_time() - started < 2 + len(markdown) * 20e-6
    assert all(passage.tokens <= 222 for passage in passages)


@pytest.mark.parametrize("strategy", sorted(CHUNK_STRATEGIES))
@pytest.mark.parametrize("name", ["one word", "headings", "runs of spaces"])
def test_every_strategy_ends(strategy, name):
    markdown = HOSTILE[name][:MANY]
    passages = chunk(markdown, settings=ChunkSettings(strategy, 32, 31, 5000), count=Offsets())
    assert all(passage.tokens <= 32 for passage in passages)
