"""What belongs to a source: site, path prefix, globs."""

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.crawl.globs import Globs
from ingestion.crawl.scope import Scope
from ingestion.crawl.urls import path_of
from tests.ingestion.crawl.test_urls import HREFS

START = "https://www.example.com/docs/"


def reason(url: str, **settings) -> str | None:
    refusal = Scope(**{"start_url": START, **settings}).refusal(url)
    return refusal and refusal[0]


@pytest.mark.parametrize(
    ("settings", "url", "expected"),
    [
        ({}, "https://example.com/", None),
        ({}, "http://example.com/a", None),
        ({}, "http://www.example.com/a", None),
        ({}, "https://blog.example.com/", "out_of_scope"),
        ({}, "https://example.com.evil.example/", "out_of_scope"),
        ({}, "https://notexample.com/", "out_of_scope"),
        ({}, "https://example.com:8443/", "out_of_scope"),
        ({}, "https://other.example/?u=www.example.com/", "out_of_scope"),
        ({"include_subdomains": True}, "https://blog.example.com/", None),
        ({"include_subdomains": True}, "https://a.b.example.com/", None),
        ({"include_subdomains": True}, "https://notexample.com/", "out_of_scope"),
        ({"same_site_only": False}, "https://other.example/", None),
        ({"same_site_only": False, "path_prefix": "/docs/"}, "https://other.example/blog", "out_of_scope"),
        ({"start_url": "http://127.0.0.1:8001/"}, "http://127.0.0.1:8001/a", None),
        ({"start_url": "http://127.0.0.1:8001/"}, "http://127.0.0.1:8002/a", "out_of_scope"),
        ({"start_url": "http://[::1]:8001/"}, "http://[::1]:8001/a", None),
        ({"start_url": "http://[::1]/"}, "https://[::1]/a", None),
        ({"start_url": "https://www.com/", "include_subdomains": True}, "https://anything.com/", "out_of_scope"),
        ({"start_url": "https://bücher.example/"}, "https://xn--bcher-kva.example/a", None),
        ({"path_prefix": "/docs/"}, "https://example.com/docs", None),
        ({"path_prefix": "/docs/"}, "https://example.com/docs/", None),
        ({"path_prefix": "/docs/"}, "https://example.com/docs?page=2", None),
        ({"path_prefix": "docs"}, "https://example.com/docs/a", None),
        ({"path_prefix": "/docs/"}, "https://example.com/docs.html", "out_of_scope"),
        ({"path_prefix": "/docs/"}, "https://example.com/Docs/a", "out_of_scope"),
        ({"path_prefix": "/docs/"}, "https://example.com/?x=/docs/", "out_of_scope"),
        ({"path_prefix": "/"}, "https://example.com/", None),
        ({"path_prefix": "/über/"}, "https://example.com/%C3%BCber/a", None),
        ({"exclude_patterns": ("*.pdf", "**/changelog/**")}, "https://example.com/a/b.pdf", "excluded"),
        ({"exclude_patterns": ("*.pdf", "**/changelog/**")}, "https://example.com/v2/changelog/", "excluded"),
        ({"exclude_patterns": ("*.pdf", "**/changelog/**")}, "https://example.com/v2/changelogs/1", None),
        ({"exclude_patterns": ("/docs",)}, START, "excluded"),
        ({"include_patterns": ("/guide/**",)}, "https://example.com/guide/a", None),
        ({"include_patterns": ("/guide/**", "*.html")}, "https://example.com/b/c.html", None),
        ({"include_patterns": ("/guide/**",)}, "https://example.com/blog", "out_of_scope"),
        ({"include_patterns": ("/guide/**",), "exclude_patterns": ("*.pdf",)}, "https://example.com/guide/a.pdf", "excluded"),
    ],
)
def test_where_a_source_ends(settings, url, expected):
    assert reason(url, **settings) == expected


def test_the_start_is_read_wherever_it_lies_in_each_spelling_that_it_redirects_to():
    scope = Scope("http://example.com/", path_prefix="/docs/", include_patterns=("/docs/guide/**",))
    assert [scope.refusal(url) for url in ("http://example.com/", "https://www.example.com/index.html")] == [None, None]
    assert scope.refusal("https://example.com/news")[0] == "out_of_scope"


def test_a_refusal_says_why():
    scope = Scope(START, path_prefix="/docs/", exclude_patterns=("*.pdf",))
    assert scope.refusal("https://other.example/")[1] == "other.example is not the site of the start, example.com."
    assert scope.refusal("https://example.com/a.pdf")[1] == "The path matches the exclude pattern *.pdf."
    assert scope.refusal("https://example.com/a")[1] == "The path is not under /docs/."


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.pdf", "/a.pdf /x/y/a.pdf /.pdf", "/a.pdf.html /a.PDF /a.pdf/b"),
        ("/*.pdf", "/a.pdf", "/x/a.pdf"),
        ("/archive/**", "/archive /archive/ /archive/a /archive/a/b", "/archives /x/archive"),
        ("/archive/*", "/archive/a /archive/a/", "/archive /archive/a/b"),
        ("archive/**", "/archive/a /x/archive/a", "/archives/a"),
        ("**/changelog/**", "/changelog /a/changelog /a/b/changelog/c/d", "/mychangelog/x /changelogs /changelog.html"),
        ("/a/**/z", "/a/z /a/b/z /a/b/c/z", "/a/xz /az /a/z/y"),
        ("/a**z", "/az /a/b/z /abcz", "/a/b/zz/y /b/az"),
        ("/v*/api", "/v/api /v2/api", "/v/2/api"),
        ("/a/**/**/z", "/a/z /a/b/z", "/a"),
        ("/a.b", "/a.b", "/axb"),
        ("/a[1]", "/a[1] /a%5B1%5D", "/a1"),
        ("/über/*", "/über/x /%C3%BCber/x", "/uber/x"),
        ("/%7euser/*", "/~user/a", "/user/a"),
        ("/", "/", "/a"),
        ("**", "/ /a /a/b", ""),
    ],
)
def test_globs(pattern, matching, other):
    globs = Globs((pattern,))
    paths = {text: path_of(f"https://example.com{text}") for text in (matching + " " + other).split()}
    assert [text for text, path in paths.items() if globs.match(path)] == matching.split()


def test_the_first_pattern_that_matches_is_named():
    globs = Globs(("/x/**", "*.html", "/a/*"))
    assert globs.match("/a/b.html") == "*.html"
    assert globs.match("/a/b") == "/a/*"
    assert globs.match("/b/b") is None
    assert Globs(()).match("/a") is None


def slow_but_plain(pattern: str) -> re.Pattern[str]:
    text = pattern.rstrip("/")
    if text and not text.startswith("/"):
        text = f"/{text}" if text.startswith("**") else f"/**/{text}"
    source = re.escape(text).replace(r"\*\*", "\0").replace(r"\*", "[^/]*")
    source = re.sub(r"/\x00(?=/|$)", "(?:/.*)?", source).replace("\0", ".*")
    return re.compile(f"{source}/*")


_GLOBS = st.lists(st.sampled_from(["a", "b", "/", "*", "/**", "/**/", "**"]), min_size=1, max_size=7).map("".join)
_PATHS = st.text(alphabet="ab/", max_size=9).map(lambda text: f"/{text}".rstrip("/") or "/")


@given(_GLOBS.filter(lambda pattern: "***" not in pattern), _PATHS)
def test_globs_agree_with_a_plain_regular_expression(pattern, path):
    assert bool(Globs((pattern,)).match(path)) == bool(slow_but_plain(pattern).fullmatch(path if path != "/" else ""))


def test_no_pattern_is_slow():
    started = process_time()
    globs = Globs(("**/a*a*a*a*a*a*a*a*a*a*a*a*a*b", "/" + "**a" * 15, *(f"**/x{number}*y*z/**" for number in range(1_000))))
    assert globs.match("/" + "a" * 8_000 + "/c") is None
    assert process_time() - started < 2


@given(HREFS, st.booleans())
def test_no_text_breaks_a_scope(url, any_site):
    scope = Scope(START, same_site_only=not any_site, path_prefix="/a/", exclude_patterns=("**/b*",), include_patterns=("*a*",))
    for text in (url, f"https://example.com/{url}"):
        refusal = scope.refusal(text)
        assert refusal is None or refusal[0] in ("out_of_scope", "excluded")
