"""YAML as it may be written: one meaning, or a sentence with the place."""

import pytest

from config.errors import InvalidInput
from kb.bundles.texts import read_document, read_documents, write_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("1:30", "1:30"),
        ("010", "010"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"),
        ("12", 12),
        ("-3", -3),
        ("0.08", 0.08),
        ("true", True),
        ("null", None),
        ("", None),
        ("<<", "<<"),
        ("'12'", "12"),
        ("[1, a]", [1, "a"]),
    ],
)
def test_bare_words_mean_what_they_look_like(text, value):
    found = read_document(f"a: {text}")["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "value", ["no", "1:30", "010", "1e3", "1_000", "2026-01-01", "~", "", " a ", "a\nb\n", "a: b #c", 1e-7, 1e22, 0.1, True, None]
)
def test_what_is_written_is_read_again(value):
    found = read_document(write_document({"a": value}))["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [1]\nb: *x", "line 2, column 4: aliases"),
        ("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "aliases"),
        ("a: !!python/object/apply:os.system [id]", "tags"),
        ("a: !!binary aGk=", "tags"),
        ("!!set {a, b}", "tags"),
        ("a: 1\nb: {c: 1, c: 2}", "line 2, column 11: the key 'c' stands twice"),
        ("2026: a", "the key 2026 is not text"),
        ("? [a]\n: b", "is not text"),
        ("a: [", "not valid YAML at line"),
        ("a: \t- b\n\t- c", "not valid YAML"),
        ("[" * 100, "nested deeper than 64"),
        ("[" * 100_000, "nesting depth|nested deeper"),
        ("a: \ud800", "not valid YAML"),
        ("a: \x07", "not valid YAML"),
        ("- a", "not an object"),
        ("text", "not an object"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a": 1', "not JSON"),
        ("a" * 1_000_001, "at most 1,000,000"),
    ],
)
def test_what_is_not_taken_is_explained(text, message):
    with pytest.raises(InvalidInput, match=message):
        read_documents(text)


def test_documents_are_separated_and_empty_ones_left_out():
    assert read_documents("---\na: 1\n---\n---\nb: 2\n...\n") == [{"a": 1}, {"b": 2}]
    with pytest.raises(InvalidInput, match="several documents"):
        read_document("a: 1\n---\nb: 2")
