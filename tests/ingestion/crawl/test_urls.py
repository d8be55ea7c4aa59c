"""Addresses: requested as published, known by one identity, and never joined or encoded by hand."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.crawl.urls import LONGEST_URL, UrlRefused, absolute, authority_of, identity, origin, path_of

BASE = "https://docs.example.com/guide/start/page.html?x=1#top"


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("next.html", "https://docs.example.com/guide/start/next.html"),
        ("../up", "https://docs.example.com/guide/up"),
        ("../../../../up", "https://docs.example.com/up"),
        ("", "https://docs.example.com/guide/start/page.html?x=1"),
        ("#part", "https://docs.example.com/guide/start/page.html?x=1"),
        ("?page=2", "https://docs.example.com/guide/start/page.html?page=2"),
        ("//cdn.example.com/a", "https://cdn.example.com/a"),
        ("HTTP://EXAMPLE.com:80/A/./B/../c", "http://example.com/A/c"),
        ("https://example.com:443", "https://example.com/"),
        ("https://example.com:8443/x", "https://example.com:8443/x"),
        (" \n/spaced\t/out ", "https://docs.example.com/spaced/out"),
        ("\\back\\slash", "https://docs.example.com/back/slash"),
        ("/a b/ü?q=ä ö", "https://docs.example.com/a%20b/%C3%BC?q=%C3%A4%20%C3%B6"),
        ("/50%/%zz/%41", "https://docs.example.com/50%25/%25zz/%41"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://EXAMPLE.com/Slash/", "https://example.com/Slash/"),
        ("https://example.com/no-slash", "https://example.com/no-slash"),
        ("https://example.com/index.html?utm_source=a&b", "https://example.com/index.html?utm_source=a&b"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[::ffff:7f00:1]/", "http://[::ffff:7f00:1]/"),
    ],
)
def test_what_is_requested_is_the_address_as_published(href, url):
    assert absolute(href, base=BASE) == url


@pytest.mark.parametrize(
    "href",
    [
        "javascript:void(0)",
        " JavaScript:x",
        "java\nscript:alert(1)",
        "mailto:a@b.example",
        "tel:+123",
        "data:text/html,x",
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://user:secret@example.com/",
        "https://user@example.com/",
        "http://",
        "http://exa mple.com/",
        "http://example.com:99999/",
        "http://a%2Fb/",
        "http://[::1/",
        "/\ud800",
    ],
)
def test_what_is_no_page_of_the_web_is_refused(href):
    with pytest.raises(UrlRefused) as refused:
        absolute(href, base=BASE)
    assert refused.value.reason == "bad_url"
    assert "secret" not in str(refused.value)


def test_the_longest_address_is_taken_and_one_character_more_is_not():
    start = "https://example.com/"
    assert len(absolute(start + "a" * (LONGEST_URL - len(start)), base=BASE)) == LONGEST_URL
    for href in (start + "a" * (LONGEST_URL - len(start) + 1), "ü" * 3_000, "a" * 100_000):
        with pytest.raises(UrlRefused) as refused:
            absolute(href, base=BASE)
        assert refused.value.reason == "url_too_long"


SAME = {
    "https://example.com/": (
        "https://EXAMPLE.com",
        "HTTPS://example.com:443/",
        "https://example.com/#top",
        "https://example.com/?",
        "https://example.com/index.html",
        "https://example.com/index.htm?",
        "https://example.com/index.php",
        "https://example.com/default.html",
        "https://example.com/a/../",
        "https://example.com//",
        "https://example.com/?utm_source=x&utm_medium=x&utm_campaign=x&utm_term=x&utm_content=x&utm_id=x",
        "https://example.com/?gclid=x&fbclid=x&msclkid=x&mc_cid=x&mc_eid=x&_ga=x",
        "https://example.com/?PHPSESSID=abc123&sid=0123456789abcdef0123456789abcdef",
        "https://example.com/index.php;jsessionid=0A1B2C",
    ),
    "https://example.com/Docs/a": (
        "https://example.com/Docs/a/",
        "https://example.com/Docs/a/index.html",
        "https://example.com/Docs/./b/../a",
        "https://example.com/Docs/%61",
        "https://example.com/Docs/a;jsessionid=1A2B?utm_id=1",
    ),
    "https://example.com/s?a=1&b=2": (
        "https://example.com/s?b=2&a=1",
        "https://example.com/s/?b=2&&a=1&",
        "https://example.com/s?gclid=7&b=%32&a=1#x",
    ),
    "https://example.com/%C3%BC?q=%7Bx%7D": ("https://example.com/ü?q={x}", "https://example.com/%c3%bc?q=%7bx%7d"),
}
DIFFERENT = [
    "https://example.com/",
    "http://example.com/",
    "https://www.example.com/",
    "https://example.com:8443/",
    "https://example.com/docs",
    "https://example.com/Docs",
    "https://example.com/docs.html",
    "https://example.com/docs//x",
    "https://example.com/docs/x",
    "https://example.com/docs%2Fx",
    "https://example.com/my-index.html",
    "https://example.com/index.html.txt",
    "https://example.com/?ref=x",
    "https://example.com/?sid=5",
    "https://example.com/?sid=central-station-of-the-city",
    "https://example.com/?a=1&a=2",
    "https://example.com/?a=2&a=1",
    "https://example.com/?a",
    "https://example.com/?a=",
    "https://example.com/;version=2",
]


@pytest.mark.parametrize(("known", "spelling"), [(known, spelling) for known, all_ in SAME.items() for spelling in all_])
def test_spellings_of_one_address_are_one_page(known, spelling):
    assert identity(spelling) == known == identity(known)


def test_different_pages_stay_apart():
    assert len({identity(url) for url in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://Example.com:80/x?y", "http://example.com"),
        ("https://example.com:80", "https://example.com:80"),
        ("http://[::1]:8001/a?b/c", "http://[::1]:8001"),
        ("https://example.com?x=https://other.example", "https://example.com"),
    ],
)
def test_origin(url, expected):
    assert origin(url) == expected


def test_host_and_path_of_an_address():
    url = absolute("https://Example.com:8443?next=/a@b", base=BASE)
    assert authority_of(url) == "example.com:8443"
    assert path_of(url) == "/"
    assert path_of("https://example.com/%7Ea/ü/%e4") == "/~a/%C3%BC/%E4"


_PARTS = st.sampled_from(
    [
        "/",
        "//",
        ".",
        "..",
        "a",
        "B",
        "%",
        "%2",
        "%41",
        "%2e",
        "%2F",
        "%25",
        "ü",
        " ",
        "?",
        "&",
        "=",
        "#",
        ";",
        ":",
        "@",
        "index.html",
        "\\",
        "|",
    ]
    + [
        "sid=",
        ";sid=",
        ";jsessionid=x",
        "utm_id=1",
        "b=1",
        "a=2",
        "http:",
        "https://",
        "x.example",
        "[",
        "]",
        "\x00",
        "\n",
        "\ud800",
        "+",
        "*",
    ]
)
HREFS = st.one_of(st.text(max_size=60), st.lists(_PARTS, max_size=14).map("".join))


@given(HREFS, HREFS)
def test_any_text_is_an_address_or_refused(href, base):
    for of in (base, BASE):
        try:
            url = absolute(href, base=of)
        except UrlRefused:
            continue
        assert url.startswith(("http://", "https://"))
        assert url.isascii()
        assert not set(url) & set(' "<>#\n')
        assert absolute(url, base=BASE) == url
        assert url.startswith(origin(url))


@given(HREFS)
def test_an_identity_is_its_own_identity(path):
    try:
        url = absolute(path, base=BASE)
        known = identity(url)
    except UrlRefused:
        return
    assert identity(known) == known
    assert origin(known) == origin(url)
    assert absolute(known, base=BASE) == known


def test_thousands_of_links_a_second():
    count = 5_000
    started = process_time()
    for number in range(count):
        identity(absolute(f"../chapter-{number}/page.html?b=1&a=2#part", base=BASE))
    assert process_time() - started < count / 5_000  # seen: about 35,000 a second
