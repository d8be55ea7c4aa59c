import itertools
import re

from ingestion.chunk import ChunkSettings, chunk


def count(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def test_structure_is_not_looked_at_but_headings_are_known():
    markdown = "# One\n\n" + "A sentence of it here. " * 30 + "\n\n# Two\n\n" + "A sentence of it there. " * 30
    passages = chunk(markdown, settings=ChunkSettings("recursive", 60, 12, 120), count=count)
    assert {passage.heading_path for passage in passages} == {("One",), ("Two",)}
    assert all(passage.tokens <= 60 for passage in passages)
    assert any(after.start < before.end for before, after in itertools.pairwise(passages))
