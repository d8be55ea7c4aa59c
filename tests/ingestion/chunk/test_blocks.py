import pytest

from ingestion.chunk.blocks import leading_headings, parse_blocks


@pytest.mark.parametrize(
    ("markdown", "kinds"),
    [
        ("# a\ntext\n## b", "heading paragraph heading"),
        ("#no heading\n####### nor this", "paragraph"),
        ("a\nb\n===\nc\n---\nd", "heading heading paragraph"),
        ("a\n\n---\n\n* * *\nb", "paragraph rule rule paragraph"),
        ("text\n```\n# code\n\n```\ntext", "paragraph code paragraph"),
        ("~~~ x\n```\n~~~~\nafter", "code paragraph"),
        ("```\nnever closed\n\n# a", "code"),
        ("`inline` ``` text\n# a", "paragraph heading"),
        ("- a\n\n  more\n- b\n\nafter", "list paragraph"),
        ("- a\n  ```\n  # x\n\n  ```\n  b\n# c", "list heading"),
        ("- a\n  ```\nnot in the fence\n\n# c", "list heading"),
        ("1. a\n2) b\nlazy\n\n\n3. c", "list"),
        ("text\n2019. was a year", "paragraph"),
        ("> a\nlazy\n> b\n\nc", "quote paragraph"),
        ("a | b\n--|--\n1 | 2\nafter", "table paragraph"),
        ("text\n| a |\n|---|\n| 1 |\n\nx", "paragraph table paragraph"),
        ("a | b\nno table", "paragraph"),
        ("<div>\nx\n\n# a", "html heading"),
        ("<pre>\n\n# x\n</pre>\n# a", "html heading"),
        ("<!-- a\n\n# b -->\nc", "html paragraph"),
        ("<https://example.org> is a link", "paragraph"),
        ("    code\n\n    code\ntext", "code paragraph"),
        ("\u3000\n\n \t\nx", "paragraph"),
    ],
)
def test_kinds(markdown, kinds):
    assert " ".join(block.kind for block in parse_blocks(markdown)) == kinds


def test_spans_are_whole_lines_and_titles_are_clean():
    markdown = "\n##  A `b`  ## \n\nTwo\n lines \n===\n#\n"
    found = [(block.title, block.level, markdown[block.start : block.end]) for block in parse_blocks(markdown)]
    assert found == [("A `b`", 2, "##  A `b`  ## "), ("Two lines", 1, "Two\n lines \n==="), ("", 1, "#")]


def test_a_paragraph_marked_up_as_heading_is_a_paragraph():
    assert [block.kind for block in parse_blocks("# " + "word " * 100 + "\n\n" + "word " * 100 + "\n---\n")] == [
        "paragraph",
        "paragraph",
        "rule",
    ]


def test_leading_headings():
    assert leading_headings("# A\n\nB\n---\n\ntext\n# C") == ["A", "B"]
    assert leading_headings("text\n# A") == leading_headings("") == []
