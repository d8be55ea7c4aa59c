"""robots.txt by RFC 9309."""

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.crawl.robots import MOST_BYTES, MOST_RULES, Robots, product_token, robots_of

CASES = Path(__file__).resolve().parents[4] / "shared" / "data" / "robots" / "cases.json"
AGENT = "Lectern/0.1 (+https://lectern.example)"
URL = "https://example.com/robots.txt"


def robots(text: str | bytes, *, agent: str = AGENT, status: int | None = 200) -> Robots:
    return robots_of(status=status, body=text if isinstance(text, bytes) else text.encode(), url=URL, agent=agent)


def allowed(text: str | bytes, *paths: str, agent: str = AGENT) -> list[bool]:
    read = robots(text, agent=agent)
    return [read.allows(f"https://example.com{path}") for path in paths]


def test_public_cases():
    if not CASES.exists():
        pytest.skip(f"{CASES} is not there")
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    wrong = [case for case in cases if robots(case["robots"], agent=case["agent"]).allows(case["url"]) is not case["allowed"]]
    assert wrong == []
    assert len(cases) > 30


@pytest.mark.parametrize(
    ("status", "outcome", "allows"),
    [
        (200, "read", False),
        (206, "read", False),
        (404, "none", True),
        (403, "none", True),
        (401, "none", True),
        (410, "none", True),
        (301, "none", True),
        (429, "unavailable", False),
        (500, "unavailable", False),
        (503, "unavailable", False),
        (None, "unavailable", False),
    ],
)
def test_what_an_answer_means(status, outcome, allows):
    text = "User-agent: *\nDisallow: /\nCrawl-delay: 5\nSitemap: /s.xml"
    answer = robots(text, status=status)
    assert (answer.outcome, answer.allows("https://example.com/a")) == (outcome, allows)
    assert (answer.crawl_delay, answer.sitemaps) == ((5.0, ("https://example.com/s.xml",)) if outcome == "read" else (None, ()))


def test_an_operator_may_ignore_it():
    ignored = Robots("ignored", text="User-agent: *\nDisallow: /\nCrawl-delay: 9\nSitemap: /s.xml", agent=AGENT)
    assert (ignored.allows("https://example.com/a"), ignored.crawl_delay, ignored.sitemaps) == (True, None, ())


def test_a_page_that_is_no_robots_file_forbids_nothing():
    assert allowed("<!doctype html><html><body>Disallow: /\nPage</body></html>", "/a") == [True]
    assert allowed("", "/a") == [True]


@pytest.mark.parametrize(
    ("agent", "token"),
    [("Lectern/0.1 (+https://x.example)", "Lectern"), ("AcmeBot", "AcmeBot"), (" My-Bot 2", "My-Bot"), ("", ""), ("/1", "")],
)
def test_the_product_token_is_the_first_word(agent, token):
    assert product_token(agent) == token


@pytest.mark.parametrize("name", ["Lectern", "lectern", "LECTERN/9.9", "Lectern*", "Lectern and friends"])
def test_a_group_that_names_us_replaces_the_one_for_everybody(name):
    text = f"User-agent: *\nDisallow: /\nUser-agent: {name}\nDisallow: /private\n"
    assert allowed(text, "/a", "/private/a") == [True, False]


@pytest.mark.parametrize("name", ["Lect", "Lecternbot", "ctern", "bot Lectern", "My-Lectern"])
def test_a_part_of_our_name_is_somebody_else(name):
    assert allowed(f"User-agent: {name}\nDisallow: /\n", "/a") == [True]


def test_groups_for_one_agent_add_up_and_blank_or_unknown_lines_end_none():
    text = "User-agent: lectern\nDisallow: /a\n\n\nDisallow: /b\nUser-agent: other\nDisallow: /c\nUser-agent: Lectern\nDisallow: /d"
    assert allowed(text, "/a", "/b", "/c", "/d") == [False, False, True, False]
    shared = "User-agent: lectern\nNoidea: x\nCrawl-delay: 2\nSitemap: https://example.com/s\n\nUser-agent: other\nDisallow: /a\n"
    assert allowed(shared, "/a", "/b") == [False, True]


def test_the_longest_rule_wins_and_allow_wins_ties():
    text = "User-agent: *\nDisallow: /\nAllow: /docs/\nDisallow: /docs/old/\nAllow: /docs/old/\nDisallow: /*.pdf$\nAllow: /$"
    assert allowed(text, "/", "/x", "/docs/a", "/docs/old/a", "/x.pdf", "/docs/x.pdf") == [True, False, True, True, False, False]
    assert allowed("User-agent: *\nDisallow: /docs/*.pdf$", "/docs/x.pdf", "/docs/x.pdf?a", "/docs/x.pdfs") == [False, True, True]
    assert allowed("User-agent: *\nDisallow: /*?sort=", "/a?sort=1", "/a?x=1") == [False, True]


def test_what_escapes_forbid_is_forbidden_and_what_they_allow_is_not_certain():
    assert allowed("User-agent: *\nDisallow: /%70rivate", "/private", "/%70rivate") == [False, False]
    assert allowed("User-agent: *\nDisallow: /\nAllow: /%7Euser/", "/~user/", "/%7Euser/a") == [True, True]
    assert allowed("User-agent: *\nDisallow: /\nAllow: /%70ublic", "/public") == [False]
    assert allowed("User-agent: *\nDisallow: /ü", "/%C3%BC/a", "/%c3%bc/a", "/u") == [False, False, True]


def test_usual_mistakes_are_understood():
    text = "user agent Lectern\ndissalow: /a # a comment\nDisallow /b\nDISALLOW:/c\nDisallow : /d\nAllowed: /e\n"
    assert allowed(text, "/a", "/b", "/c", "/d", "/e") == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        ("300", 300.0),
        ("301", None),
        ("0", None),
        ("-1", None),
        ("x", None),
        ("1e9", None),
        ("nan", None),
        ("9" * 400, None),
    ],
)
def test_crawl_delay(value, delay):
    assert robots(f"User-agent: *\nCrawl-delay: {value}\n").crawl_delay == delay


def test_a_delay_for_others_is_not_ours():
    text = "User-agent: other\nCrawl-delay: 7\nDisallow:\n\nUser-agent: *\nCrawl-delay: 3\nDisallow:\n\nUser-agent: Lectern\nDisallow: /x"
    assert robots(text).crawl_delay is None
    assert robots(text, agent="Third").crawl_delay == 3
    assert robots(text, agent="Other").crawl_delay == 7


def test_sitemaps_are_for_everybody_and_resolved():
    text = (
        "Sitemap: /one.xml\nUser-agent: other\nDisallow: /\nsite-map: https://cdn.example.com/two.xml\nSitemap: ftp://example.com/x\n"
        "SITEMAP: three.xml\nSitemap:\nSitemap: /one.xml\nSitemap: http://[\n"
    )
    assert robots(text).sitemaps == ("https://example.com/one.xml", "https://cdn.example.com/two.xml", "https://example.com/three.xml")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_byte_order_marks(end, encoding):
    text = end.join(["User-agent: *", "Disallow: /a", "Allow: /a/b", ""])
    assert allowed(text.encode(encoding), "/a", "/a/b", "/c") == [False, True, True]


def test_what_is_no_text_does_no_harm():
    assert allowed(b"User-agent: *\nDisallow: /\xe9\xff\nDisallow: /b\x00c\x0b\x0c\x85d\nDisallow: /e", "/e", "/f") == [False, True]
    assert allowed("User-agent: *\nDisallow: /a\u2028Disallow: /b", "/a", "/b") == [True, True]


def test_rules_and_bytes_are_bounded():
    rules = "".join(f"Disallow: /{number}/x\n" for number in range(MOST_RULES + 10))
    answers = allowed(f"User-agent: *\n{rules}", f"/{MOST_RULES - 1}/x", f"/{MOST_RULES}/x")
    assert answers == [False, True]
    half = b"User-agent: *\nDisallow: /a\n#".ljust(MOST_BYTES - 10, b"x") + b"\nAllow: /a/b"
    assert allowed(half, "/a/b", "/c") == [False, True]


def test_a_large_file_is_read_once_and_quickly():
    text = "User-agent: *\n" + "".join(f"Disallow: /{number}*a*b*c*d\n" for number in range(40_000))
    started = process_time()
    read = robots(text)
    assert all(read.allows(f"https://example.com/page/{number}") for number in range(300))
    assert process_time() - started < 3


_PIECES = st.sampled_from(
    ["User-agent", ":", " ", "*", "\n", "\r", "Disallow", "Allow", "/", "$", "Lectern", "#", "Sitemap", "Crawl-delay", "%", "%4"]
)


@given(st.one_of(st.binary(max_size=200), st.lists(_PIECES, max_size=40).map(lambda pieces: "".join(pieces).encode())))
def test_no_bytes_break_it(body):
    read = robots(body)
    assert read.allows("https://example.com/a/b?c=d%20e") in (True, False)
    assert read.crawl_delay is None or 0 < read.crawl_delay <= 300
    assert all(url.startswith(("http://", "https://")) for url in read.sitemaps)
    assert Robots(read.outcome, read.text, read.agent, read.url) == read
