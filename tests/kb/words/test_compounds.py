import pytest

from kb.words.compounds import candidates, may_be_compound, split
from kb.words.query import parse_query


@pytest.mark.parametrize(
    ("word", "known", "parts"),
    [
        ("bevolkerungsdichte", {"bevolkerung", "dichte"}, ("bevolkerung", "dichte")),
        ("kindergarten", {"kind", "garten"}, ("kind", "garten")),
        ("haustur", {"haus", "haustur"}, None),
        ("donaudampfschiff", {"donau", "dampf", "schiff", "dampfschiff"}, ("donau", "dampfschiff")),
    ],
)
def test_a_word_is_taken_apart_where_both_parts_are_known(word: str, known: set[str], parts: tuple[str, str] | None) -> None:
    assert split(word, known) == parts


def test_candidates_are_few_and_long_enough() -> None:
    found = list(candidates("a" * 40))
    assert len(found) < 300
    assert all(len(first) >= 4 and len(second) >= 4 for first, second in found)
    assert not may_be_compound("dichte")
    assert not may_be_compound("err_conn_reset")
    assert not may_be_compound("x" * 41)


def test_only_languages_that_write_compounds_have_any() -> None:
    assert parse_query("Die Bevölkerungsdichte und solcherlei", ["de", "en"]).compounds == ("bevolkerungsdichte", "solcherlei")
    assert parse_query("population density", ["en"]).compounds == ()
