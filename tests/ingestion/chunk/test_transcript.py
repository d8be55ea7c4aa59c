import itertools
import re

import pytest

from ingestion.chunk import ChunkSettings, chunk


def count(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


@pytest.mark.parametrize("speaker", ["Ann Lee: ", "**Bob:** ", "[00:01:02] ", "00:15 - ", "- Dr. O'Neil: "])
def test_turns_are_kept_whole_where_they_fit(speaker):
    turns = [f"{speaker}I say line {index} of it.\nAnd a second line. With two sentences." for index in range(40)]
    markdown = "\n".join(turns)
    passages = chunk(markdown, settings=ChunkSettings("transcript", 90, 0, 120), count=count)
    assert len(passages) > 5
    assert all(markdown[passage.start :].startswith(speaker.strip()) for passage in passages)


def test_turns_overlap_and_headings_are_known():
    markdown = "# Call\n\n" + "\n\n".join(f"Ann: This is what I say {index}. It is short." for index in range(60))
    passages = chunk(markdown, settings=ChunkSettings("transcript", 100, 15, 120), count=count)
    assert {passage.heading_path for passage in passages} == {("Call",)}
    assert sum(after.start < before.end for before, after in itertools.pairwise(passages)) > len(passages) // 2
