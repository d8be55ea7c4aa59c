import pytest

from ingestion.chunk.context import contextual_text


def count(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("title", "path", "text", "expected"),
    [
        ("Guide", ("Setup", "Linux"), "Body.", "Guide > Setup > Linux\n\nBody."),
        ("guide ", ("Guide", "Linux"), "Body.", "Guide > Linux\n\nBody."),
        ("Guide", ("Setup", "Linux"), "## Linux\n\nBody.", "Guide > Setup\n\n## Linux\n\nBody."),
        ("Guide", ("Guide", "Setup"), "# Guide\n\n## Setup\n\nBody.", "# Guide\n\n## Setup\n\nBody."),
        ("Guide", (), "# Guide\n\nBody.", "# Guide\n\nBody."),
        ("", (), "Body.", "Body."),
        ("A\nB", ("", "C"), "Body.", "A B > C\n\nBody."),
    ],
)
def test_context_line(title, path, text, expected):
    assert contextual_text(title, path, text, count=count) == expected


def test_middle_headings_go_first():
    assert contextual_text("T", ("A", "B", "C"), "Body.", count=count, reserve=5) == "T > A > C\n\nBody."
    assert contextual_text("T", ("A", "B", "C"), "Body.", count=count, reserve=3) == "T > C\n\nBody."


def test_the_rest_is_trimmed_at_a_word():
    text = contextual_text("one two three four five six", (), "Body.", count=count, reserve=3)
    assert text == "one two three\n\nBody."
    assert contextual_text("one two", ("three",), "Body.", count=count, reserve=3) == "one two\n\nBody."
    assert contextual_text("one", (), "Body.", count=count, reserve=0) == "Body."


def test_a_title_without_spaces_is_cut_by_characters():
    assert contextual_text("字" * 5000, (), "Body.", count=len, reserve=32) == "字" * 32 + "\n\nBody."
