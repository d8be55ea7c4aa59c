import itertools
import re

from ingestion.chunk import ChunkSettings, chunk


def count(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def cut(markdown: str, *, target: int = 60, overlap: int = 0, min_chars: int = 0):
    passages = chunk(markdown, settings=ChunkSettings("structure", target, overlap, min_chars), count=count)
    return [(passage.heading_path, markdown[passage.start : passage.end]) for passage in passages]


def sentences(number: int, word: str = "word") -> str:
    return " ".join(f"The {word} number {index} stands here." for index in range(number))


def test_sections_are_cut_apart_and_know_where_they_are():
    found = cut(f"# Guide\n\n{sentences(6)}\n\n## Setup\n\n{sentences(6)}\n\n### Linux ###\n\n{sentences(6)}\n\n## Use\n\n{sentences(6)}")
    assert [path for path, _ in found] == [("Guide",), ("Guide", "Setup"), ("Guide", "Setup", "Linux"), ("Guide", "Use")]
    assert found[1][1].startswith("## Setup\n\nThe word")


def test_headings_without_text_belong_to_what_follows():
    found = cut(f"{sentences(8)}\n\n# Book\n\n## Chapter\n\n{sentences(7)}\n\n# End")
    assert [path for path, _ in found] == [(), ("Book", "Chapter"), ("End",)]
    assert found[1][1].startswith("# Book\n\n## Chapter\n\nThe")
    assert found[2][1] == "# End"


def test_a_heading_never_stands_alone_before_a_paragraph_that_just_fits():
    found = cut(f"# Long enough heading of this section\n\n{sentences(9)}\n\n{sentences(9)}")
    assert found[0][1].startswith("# Long enough heading of this section\n\nThe word number 0")


def test_setext_headings_count_and_code_hides_headings():
    script = "run --it\n" * 20
    found = cut(f"Title\n=====\n\n{sentences(8)}\n\n```sh\n# not a heading\n{script}```\n\nPart two\n---\n\n{sentences(8)}")
    assert next(path for path, _ in found) == ("Title",)
    assert found[-1][0] == ("Title", "Part two")
    assert all(path != ("not a heading",) for path, _ in found)


def test_a_long_table_is_cut_between_rows_and_remembers_its_header():
    markdown = f"# T\n\n{sentences(3)}\n\n| name | value |\n|---|---|\n" + "".join(
        f"| row {index} | {index * 7} |\n" for index in range(60)
    )
    passages = chunk(markdown, settings=ChunkSettings("structure", 80, 10, 0), count=count)
    rows = [passage for passage in passages if passage.table_header]
    assert len(rows) > 4
    for passage in rows:
        assert markdown[slice(*passage.table_header)] == "| name | value |\n|---|---|"
        assert all(re.fullmatch(r"\| row \d+ \| \d+ \|", line) for line in markdown[passage.start : passage.end].split("\n"))
    assert not passages[0].table_header


def test_code_is_cut_between_lines():
    code = "\n".join(f"value_{index} = compute({index}, other)" for index in range(60))
    for _, text in cut(f"```python\n{code}\n```", target=70):
        assert all(re.fullmatch(r"```(python)?|value_\d+ = compute\(\d+, other\)", line) for line in text.split("\n"))


def test_nested_items_stay_with_their_item_where_they_fit():
    item = "- Item {0} is the parent of two\n  - first child of {0} here\n  - second child of {0} here\n"
    for _, text in cut("".join(item.format(index) for index in range(12)), target=60):
        assert text.startswith("- Item")
        assert text.split("\n")[-1].startswith("  - second child")


def test_paragraphs_are_cut_only_when_they_must_be():
    paragraphs = [sentences(5, f"p{index}") for index in range(20)]
    found = "\n\n".join(text for _, text in cut("\n\n".join(paragraphs), target=80))
    assert found == "\n\n".join(paragraphs)
    for _, text in cut(sentences(50), target=40):
        assert text.startswith("The ")
        assert text.endswith("here.")


def test_short_passages_fold_within_the_budget_only():
    markdown = f"# A\n\n{sentences(6)}\n\n## B\n\nTiny.\n\n## C\n\n{sentences(6)}\n\n## D\n\n{sentences(7)}"
    plain, folded = cut(markdown), cut(markdown, min_chars=40, target=60)
    assert ("A", "B") in [path for path, _ in plain]
    assert "## B\n\nTiny." not in [text for _, text in folded]
    assert len(folded) == len(plain) - 1
    full = f"# A\n\n{sentences(7)}\n\n## B\n\nTiny.\n\n## C\n\n{sentences(7)}"
    assert "## B\n\nTiny." in [text for _, text in cut(full, min_chars=40, target=54)]


def test_sections_of_different_parents_do_not_fold():
    found = cut(f"# A\n\n{sentences(6)}\n\n## Last\n\nTiny.\n\n# B\n\n## First\n\nSmall.\n\n# C\n\n{sentences(6)}", min_chars=60, target=50)
    assert all("Tiny." not in text or "Small." not in text for _, text in found)


def test_neighbours_inside_one_paragraph_overlap_by_whole_sentences():
    passages = chunk(sentences(60), settings=ChunkSettings("structure", 80, 20, 0), count=count)
    text = sentences(60)
    shared = 0
    for before, after in itertools.pairwise(passages):
        overlap = text[after.start : before.end]
        assert count(overlap) <= 20
        if after.start < before.end:
            shared += 1
            assert overlap.startswith("The ")
    assert shared >= len(passages) - 2


def test_an_introduction_stays_with_its_list():
    markdown = "\n\n".join(f"{sentences(3)}\n\nWhat matters in case {index}:\n\n- one thing\n- another thing" for index in range(10))
    for _, text in cut(markdown, target=60):
        assert not text.endswith(":")
