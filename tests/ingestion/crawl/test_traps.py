"""Addresses without end are left; sites with many pages are not."""

import json
import re
import subprocess
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.crawl.traps import MOST_COMBINATIONS, MOST_COUNTERS, MOST_DATES, Seen, why_trap
from ingestion.crawl.urls import absolute
from tests.ingestion.crawl.test_urls import HREFS

ROOT = "https://example.com"


def trapped(paths, seen: Seen | None = None) -> int:
    seen = seen or Seen()
    return sum(bool(why_trap(f"{ROOT}{path}", seen=seen)) for path in paths)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/a/b/a/b/a/b", "repeats /a/b again"),
        ("/x/about/about/about/about/", "repeats /about again"),
        ("/a/b/c/d/a/b/c/d/a/b/c/d/page.html", "repeats /a/b/c/d again"),
        ("/about/us/about/team/about/us/team/about", "comes back to /about"),
        ("/" + "/".join(str(number) for number in range(50)), "more than 40 segments"),
        ("/?" + "&".join(f"p{number}={number}" for number in range(30)), "more than 24 parameters"),
        ("/?a=1&a=1&b=2&a=1", "repeats the same parameter"),
        ("/login?next=%2Flogin%3Fnext%3D%25252Flogin", "an address in an address"),
    ],
)
def test_one_address_that_shows_a_trap(path, words):
    assert words in why_trap(f"{ROOT}{path}", seen=Seen())


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/docs/docs/index.html",
        "/a/b/a/b",
        "/x/x/x",
        "/2011/11/11/11/11-things",
        "/0/0/0/0/0/0",
        "/api/v1/users/v1/posts/v1",
        "/com/example/com/example/Com.html",
        "/search?q=a&page=2&sort=b&lang=en",
        "/list?tag=a&tag=b&tag=c",
        "/login?next=%2Fdocs%3Fa%3D%2526b",
        "/a%20b%20c%20d",
    ],
)
def test_one_address_that_only_looks_odd(path):
    assert why_trap(f"{ROOT}{path}", seen=Seen()) == ""


DAYS = [f"{year}/{month:02d}/{day:02d}" for year, month, day in product(range(2020, 2023), range(1, 13), range(1, 29))]
CALENDARS = {
    "in the path": [f"/calendar/{day}" for day in DAYS],
    "in one segment": [f"/events/{day.replace('/', '-')}/" for day in DAYS],
    "in the query": [f"/events?view=day&date={day.replace('/', '-')}" for day in DAYS],
    "in parts": [f"/events?year={day[:4]}&month={int(day[5:7])}&day={int(day[8:])}" for day in DAYS],
}


@pytest.mark.parametrize("name", CALENDARS)
def test_a_calendar_is_left_after_a_year_of_days(name):
    assert trapped(CALENDARS[name]) == len(DAYS) - MOST_DATES


def test_archives_are_no_calendars():
    for paths in (
        [f"/blog/{day}/what-happened-{number}" for number, day in enumerate(DAYS)],
        [f"/archives/list/2024-05/msg{number:05d}.html" for number in range(3_000)],
        [f"/show?list=users&year=2024&month=5&message={number}" for number in range(3_000)],
        [f"/help/2023.1/{number}.html" for number in range(3_000)],
        [f"/articles/{number}" for number in range(3_000)],
    ):
        assert trapped(paths) == 0


def test_filters_that_add_up_are_left_and_pages_of_one_script_are_not():
    filters = [
        "/parts?" + "&".join(f"{name}=1" for name, on in zip("abcdefgh", chosen, strict=True) if on) for chosen in product((0, 1), repeat=8)
    ]
    assert len(filters) - trapped(filters) == MOST_COMBINATIONS + 1 + 8  # without a filter, and with one
    assert trapped(f"/index.php?option=content&view=article&id={number}&Itemid={number % 7}" for number in range(3_000)) == 0
    assert trapped(f"/viewtopic.php?t={number}" for number in range(3_000)) == 0


def test_a_listing_that_adds_its_filters_to_the_address_ends():
    seen, level, followed = Seen(), ["/parts"], 0
    for _ in range(20):
        found = [f"{url}{'&' if '?' in url else '?'}{name}={url.count('=')}" for url in level for name in ("colour", "size", "page")]
        level = [url for url in found if not why_trap(f"{ROOT}{url}", seen=seen)]
        followed += len(level)
        if not level or followed > 5_000:
            break
    assert 0 < followed < 100


def test_relative_links_that_grow_end():
    level, followed = ["/"], 0
    for _ in range(20):
        level = [f"{url}{name}/" for url in level for name in ("about/us", "about/team")]
        level = [url for url in level if not why_trap(f"{ROOT}{url}", seen=Seen())]
        followed += len(level)
    assert 0 < followed < 50


def test_a_session_is_not_judged_because_the_page_is_known_without_it():
    assert trapped(f"/page?year=2024&PHPSESSID={number}" for number in range(100)) == 0


def test_counts_survive_a_restart_and_are_bounded():
    seen = Seen()
    half = CALENDARS["in the path"][: MOST_DATES - 10]
    assert trapped(half, seen) == 0
    again = Seen.restored(json.loads(json.dumps(seen.counts)))
    assert trapped(CALENDARS["in the path"][len(half) :][:30], again) == 20
    many = Seen()
    assert trapped((f"/{number}/2024/05" for number in range(MOST_COUNTERS + 100)), many) == 0
    assert len(many.counts) == MOST_COUNTERS


@given(HREFS)
def test_no_address_breaks_it(href):
    try:
        url = absolute(href, base=f"{ROOT}/a/")
    except ValueError:
        return
    seen = Seen()
    assert isinstance(why_trap(url, seen=seen), str)


@given(st.lists(st.integers(0, 3), max_size=200))
def test_a_counter_never_passes_its_bound(subjects):
    seen = Seen()
    accepted = [subject for subject in subjects if seen.within(f"{subject}", 5)]
    assert all(accepted.count(subject) == min(5, subjects.count(subject)) for subject in set(subjects))


def test_no_page_of_a_real_site_is_taken_for_a_trap(tmp_path):
    package = "postgresql-doc-15"
    try:
        subprocess.run(["apt-get", "download", package], cwd=tmp_path, check=True, capture_output=True, timeout=60)
        subprocess.run(["dpkg", "-x", str(next(tmp_path.glob("*.deb"))), "."], cwd=tmp_path, check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError, StopIteration):
        pytest.skip(f"{package} cannot be downloaded here")
    files = list(tmp_path.rglob("*.html"))
    addresses = {f"/{path.relative_to(tmp_path).as_posix()}" for path in files}
    for path in files:
        folder = f"{ROOT}/{path.relative_to(tmp_path).as_posix()}"
        for href in re.findall(r'href="([^"]{1,500})"', path.read_text(encoding="utf-8", errors="replace")):
            if ":" not in href:
                addresses.add(absolute(href, base=folder).removeprefix(ROOT))
    assert len(addresses) > 1_000
    assert trapped(sorted(addresses)) == 0
