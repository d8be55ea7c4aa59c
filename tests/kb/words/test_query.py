import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.words.query import MAX_CONDITIONS, MAX_TERMS, Wording, WordQuery, parse_query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('reset "Connection  Pool"', {"phrases": ("connection pool",), "terms": {"reset", "connect", "pool"}}),
        ("“smart quotes” «other ones»", {"phrases": ("smart quotes", "other ones")}),
        ("cats -dogs", {"excluded": ("dogs",), "excluded_terms": ("dog",), "terms": {"cat"}}),
        ('cats -"big dogs"', {"excluded": ("big dogs",), "excluded_terms": (), "terms": {"cat"}}),
        ("well-known -5 degrees gcc -o x", {"excluded": ()}),
        ("“Model C”-Schulen seit wann", {"excluded": (), "phrases": ("model c",)}),
        ("Einfuhren und -ausfuhren bzw. -zölle", {"excluded": ()}),
        ("--no-cache", {"excluded": ()}),
        ("-only", {"excluded": (), "terms": set()}),
        ("-dogs", {"excluded": (), "terms": {"dog"}}),
        ("conn* pool", {"prefixes": ("conn",), "terms": {"conn", "pool"}}),
        ("a* * x*y", {"prefixes": ()}),
        ('"unbalanced', {"phrases": (), "terms": {"unbalanc"}}),
        ('"" " " "!?"', {"phrases": (), "terms": set()}),
        ("why ERR_CONN_RESET in v2.3.1?", {"identifiers": ("err_conn_reset", "v2.3.1")}),
        ("foo.bar() AB-1234 getUserName x86 10.0.0.1 a@b.org src/kb/x.py C++ 12345", {
            "identifiers": ("foo.bar", "ab-1234", "getusername", "x86", "10.0.0.1", "a@b.org", "src/kb/x.py", "c++", "12345")
        }),
        ("PostgreSQL e-mail 10-20 2.5 1/2 1950s 2nd and/or iPhone 2024 U.S. e.g. boundary-layer", {"identifiers": ()}),
        ("-ERR_CONN pool", {"identifiers": (), "excluded": ("err_conn",)}),
        ("", {"terms": set(), "phrases": ()}),
        ("the of and", {"terms": set()}),
        ("foo & bar | ! <-> :* ( ' \\", {"terms": {"foo", "bar"}}),
    ],
)  # fmt: skip
def test_what_was_typed(text: str, expected: dict[str, object]) -> None:
    query = parse_query(text, ["en"])
    for name, value in expected.items():
        assert (set(query.terms) if name == "terms" else getattr(query, name)) == value


def test_each_language_has_its_say() -> None:
    query = parse_query("houses Häuser", ["en", "de", "en"])
    assert len(query.variants) == 2
    assert set(query.terms) == query.variants[0] | query.variants[1]
    assert parse_query("the houses", []).terms == {"the": 1, "houses": 1}
    # What two languages agree on is not counted twice.
    assert parse_query("pool", ["en", "de"]).terms == {"pool": 1}


def test_stop_words_of_another_language_weigh_little() -> None:
    query = parse_query("who wrote the novel about games", ["en", None])
    # Text of an unknown language holds the stop words of all: there they say nothing, and would be rare.
    assert set(query.terms) == {"wrote", "novel", "game", "games"} | set(parse_query("wrote novel games", ["en"]).terms)
    assert frozenset({"game", "games"}) in query.alike
    both = parse_query("the games", ["en", "de"])
    assert both.terms["the"] < 0.2 < both.terms["game"] == 1
    assert parse_query("die", ["en", "de"]).terms == pytest.approx({"die": 0.1})
    assert parse_query("the who", ["en", None]).terms == {"the": 1, "who": 1}
    assert parse_query("the games", ["en"]).alike == ()


def test_a_pasted_page_is_cut() -> None:
    query = parse_query(" ".join(f'word{n}x "phrase {n}" -not{n}' for n in range(5_000)), ["en"])
    assert len(query.terms) <= MAX_TERMS
    assert max(map(len, (query.phrases, query.excluded, query.identifiers))) <= MAX_CONDITIONS


@given(st.text(st.characters(exclude_categories=()), max_size=200) | st.text("\"-*a1é黑 _.@:'\\", max_size=200))
@settings(max_examples=300, deadline=None)
def test_nothing_typed_is_an_error(text: str) -> None:
    query = parse_query(text, ["en", "zh"])
    wording = Wording(text)
    wording.names_all(query)
    wording.is_excluded(query)
    assert all((*query.phrases, *query.identifiers, *query.excluded))


@pytest.mark.parametrize("text", ['"' * 20_000, "'a" * 10_000, "-a" * 10_000, " -ab" * 5_000, "a*" * 10_000, "(" * 20_000 + "*"])
def test_hostile_queries_cost_little(text: str) -> None:
    start = time.perf_counter()
    parse_query(text, ["en"])
    assert time.perf_counter() - start < 1


def test_wording_compares_to_the_letter() -> None:
    wording = Wording("Die Verbindung ERR_CONN_RESET  trat\nauf: part of v2.3.10, 黑豹队的防守, Café C++")
    assert all(wording.holds(phrase) for phrase in ("err_conn_reset", "trat auf", "的防守", "cafe", "c++"))
    assert not any(wording.holds(phrase) for phrase in ("art", "err_conn", "v2.3.1", "auf part"))


@pytest.mark.parametrize(
    ("typed", "text", "named"),
    [
        ("reset ERR_CONN_RESET", "what err_conn_reset means", True),
        ('ERR_CONN_RESET "in the pool"', "err_conn_reset elsewhere", False),
        ("reset pool", "reset pool", False),
        ('"Reset Pool"', "to reset  pool x", True),
    ],
)
def test_a_chunk_that_names_what_was_named(typed: str, text: str, named: bool) -> None:
    assert Wording(text).names_all(parse_query(typed, ["en"])) is named


def test_exclusion() -> None:
    query = parse_query('cats -dogs -"big birds"', ["en"])
    assert Wording("cats and dogs").is_excluded(query)
    assert Wording("a big  BIRDS nest").is_excluded(query)
    assert not Wording("big cats, birds").is_excluded(query)
    assert not Wording("x").is_excluded(WordQuery())
