import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.words.analysis import document_terms, terms, weighted_terms, written_words
from kb.words.languages import LANGUAGES, SIMPLE, language_name, stop_words


def found(text: str, language: str | None) -> set[str]:
    return set(terms(text, language))


@pytest.mark.parametrize(
    ("document", "query", "language"),
    [
        ("The compressors were tested", "testing a compressor", "en"),
        ("Die Häuser in München", "haus münchen", "de"),
        ("Straße", "STRASSE", "de"),
        ("Le café fermé", "cafe", "fr"),
        ("le cafe", "café", "fr"),
        ("naïve Ångström", "NAIVE angstrom", None),
        ("cafe\u0301", "caf\u00e9", "simple"),
        ("ＦＵＬＬ　ＷＩＤＴＨ ﬁle", "full file", "en"),
        ("İstanbul'da", "istanbul", "tr"),
        ("Ёлка и подъезд", "елка", "ru"),
        ("हिन्दी में खोज", "हिन्दी", "hi"),
        ("黑豹队的防守", "防守", "zh"),
        ("データベース設計", "データベース", "ja"),
        ("การค้นหาข้อมูล", "ค้นหา", "th"),
        ("검색엔진", "검색", "ko"),
        ("水", "水", "zh"),
        ("co\u00adoperate", "cooperate", "en"),
        ("the PDFs and URLs", "pdf url", "en"),
        ("in the U.S.A.", "USA", "en"),
        ("send an e-mail over Wi-Fi", "email wifi", "en"),
        ("paid 1,000,000 dollars", "1000000", "en"),
        ("भारतीय क़ानून की ज़रूरत", "कानून", "hi"),
        ("चाँद निकला", "चांद", "hi"),
        ("कंपनी के कर्मचारियों ने", "कर्मचारी", "hi"),
        ("বাংলাদেশের রাজধানী ঢাকা", "রাজধানী", "bn"),
        ("தமிழ்நாட்டின் தலைநகரம் சென்னை", "சென்னை", "ta"),
        ("العَرَبِيَّةُ لغةٌ جميلة", "العربية", "ar"),
        ("والأولاد يلعبون", "والاولاد", "ar"),
        ("דובר צה״ל מסר", 'צה"ל', None),
        ("שָׁלוֹם עולם", "שלום", None),
        ("کتاب‌های فارسی", "كتاب", "fa"),
        ("ภาษาไทยเขียนติดกัน", "ภาษาไทย", "th"),
        ("Београд је главни град", "glavnog grada", "sr"),
        ("Đường phố Việt Nam", "duong pho", "vi"),
        ("guidelines of the WHO", "who", None),
        ("the WHO says", "WHO", "en"),
        ("written in JavaScript", "javascript", "en"),
    ],
)
def test_one_word_in_its_spellings(document: str, query: str, language: str | None) -> None:
    assert found(document, language) & set(weighted_terms(query, language))


@pytest.mark.parametrize(
    ("document", "query", "language"),
    [("йод", "иод", "ru"), ("hindī", "हिन्दी", "hi"), ("が", "か", "ja"), ("C++", "C#", None), ("v2.3.1", "v2.3.2", None)],
)
def test_marks_that_make_another_letter_are_kept(document: str, query: str, language: str | None) -> None:
    shared = found(document, language) & set(weighted_terms(query, language))
    assert not shared or shared <= {"c", "v2", "3"}


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("ERR_CONN_RESET", "err_conn_reset", {"err", "conn", "reset"}),
        ("v2.3.1", "v2.3.1", {"v2", "3", "1"}),
        ("foo.bar()", "foo.bar", {"foo", "bar"}),
        ("getUserName", "getusername", {"get", "user", "name"}),
        ("XMLHttpRequest", "xmlhttprequest", {"xml", "http", "request"}),
        ("AB-1234", "ab-1234", {"ab", "1234"}),
        ("jane.doe@example.org", "jane.doe@example.org", {"jane", "doe", "example", "org"}),
        ("/usr/local/bin", "usr/local/bin", {"usr", "local", "bin"}),
        ("https://example.org/a", "https://example.org/a", {"https", "example", "org", "a"}),
        ("std::sort", "std::sort", {"std", "sort"}),
        ("C++", "c++", {"c"}),
        ("10.0.0.1", "10.0.0.1", {"10", "0", "1"}),
        (r"C:\Temp\x.log", r"c:\temp\x.log", {"c", "temp", "x", "log"}),
    ],
)
def test_identifiers_stay_whole_beside_their_parts(text: str, whole: str, parts: set[str]) -> None:
    assert found(f"see {text}, please", None) == {"see", "please", whole} | parts


def test_compounds_of_plain_words_are_their_parts() -> None:
    assert found("boundary-layer and/or", None) == {"boundary", "layer", "and", "or"}


def test_the_length_counts_words_and_not_their_spellings() -> None:
    counts, length = document_terms("The cat saw ERR_CONN_RESET and the café", "fr")
    assert sum(counts.values()) > length
    assert document_terms("the cat and the dog", "en") == ({"cat": 1, "dog": 1}, 2)
    assert document_terms("the cat and the dog", None)[1] == 5
    assert document_terms("", "en") == ({}, 0)


def test_a_word_of_a_query_weighs_one_however_it_is_spelled() -> None:
    assert sum(weighted_terms("café", "fr").values()) == pytest.approx(1)
    assert weighted_terms("ERR_CONN_RESET", None) == pytest.approx({"err_conn_reset": 1, "err": 1 / 3, "conn": 1 / 3, "reset": 1 / 3})
    assert weighted_terms("dog dogs", "en") == {"dog": 2}


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("en", "english"),
        ("EN-gb", "english"),
        ("pt_BR", "portuguese"),
        ("German", "german"),
        ("zh", SIMPLE),
        ("auto", SIMPLE),
        ("", SIMPLE),
        (None, SIMPLE),
    ],
)
def test_languages_by_code_and_name(given_name: str | None, name: str) -> None:
    assert language_name(given_name) == name


def test_english_stop_words_hold_the_usual_33() -> None:
    usual = (
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with"
    )
    assert set(usual.split()) <= stop_words("english")
    assert stop_words(SIMPLE) == frozenset()


def test_every_stemmer_of_snowball_has_its_language_and_its_stop_words() -> None:
    # Two are other ways to stem a language that has one.
    assert set(Stemmer.algorithms()) - LANGUAGES == {"porter", "dutch_porter"}
    assert {name for name in LANGUAGES if len(stop_words(name)) < 40} == set()


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("भारत की राजधानी नई दिल्ली है", "hi", 4),
        ("বাংলাদেশের রাজধানী ঢাকা শহর", "bn", 4),
        ("தமிழ்நாட்டின் தலைநகரம் சென்னை", "ta", 3),
        ("తెలుగు భాష మాట్లాడతారు", "te", 3),
        ("العَرَبِيَّةُ لغةٌ جميلة", "ar", 3),
        ("צבא ההגנה לְיִשְׂרָאֵל", "he", 3),
        ("नेपालको राजधानी काठमाडौं", "ne", 3),
    ],
)
def test_words_are_not_cut_at_their_marks(text: str, language: str, words: int) -> None:
    assert document_terms(text, language)[1] == words


def test_words_as_they_are_written() -> None:
    found = dict(written_words("The organizations of ERR_CONN_RESET, the café, U.S.A. and 防守", "en"))
    assert found == {
        "organizations": "organiz", "err_conn_reset": "err_conn_reset", "err": "err", "conn": "conn", "reset": "reset", "cafe": "cafe",
        "usa": "usa",
    }  # fmt: skip


@given(st.text(st.characters(exclude_categories=()), max_size=300), st.sampled_from(["en", "de", "ar", "zh", None]))
@settings(max_examples=150, deadline=None)
def test_any_text_is_analysed_alike_on_both_sides(text: str, language: str | None) -> None:
    counts, length = document_terms(text, language)
    assert set(counts) == set(weighted_terms(text, language))
    assert length <= sum(counts.values())
    assert {term for _, term in written_words(text, language)} <= set(counts)
    # A database takes each of them as text.
    assert all(term and "\x00" not in term and term.encode() for term in counts)
    assert set(terms(text + " 黑豹", language)) >= set(counts) - {"黑豹"} or not text.isascii()


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a." * 100_000, "a" + "." * 100_000, "-" * 100_000, "é" * 50_000, "黑" * 50_000, "aB" * 50_000, "\x00" * 9]
)
def test_hostile_text_costs_little(text: str) -> None:
    start = time.perf_counter()
    terms(text, "en")
    assert time.perf_counter() - start < 2


def test_threads_do_not_share_stemmers() -> None:
    text = " ".join(f"{'running'[: n % 7 + 1]}{n}nings testing houses" for n in range(500))
    expected = [terms(f"{text} {n}", language) for n, language in enumerate(("en", "de", "fr", "ru") * 4)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda pair: terms(f"{text} {pair[0]}", pair[1]), enumerate(("en", "de", "fr", "ru") * 4))) == expected


def test_a_chunk_costs_a_fraction_of_its_embedding() -> None:
    draw = random.Random(7)
    vocabulary = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 11))) for _ in range(5_000)]
    ranks = [1 / (rank + 1) for rank in range(len(vocabulary))]
    chunks = [" ".join(draw.choices(vocabulary, ranks, k=200)) for _ in range(100)]
    start = time.process_time()
    for text in chunks:
        terms(text, "en")
    # An embedding takes some 20 ms of a core; measured here 0.1–0.3, the bound leaves room for slow machines.
    assert (time.process_time() - start) / len(chunks) < 0.002
