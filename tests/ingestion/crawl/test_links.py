"""What a page says about other pages."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from ingestion.crawl.links import MOST_CHARACTERS, MOST_LINKS, Link, PageLinks, page_links

URL = "https://docs.example.com/guide/page.html"
ROOT = "https://docs.example.com"


def read(head: str = "", body: str = "", **arguments) -> PageLinks:
    tree = html.document_fromstring(f"<html><head>{head}</head><body>{body}</body></html>")
    return page_links(tree, url=URL, **arguments)


def addresses(*arguments, **named) -> list[str]:
    return [link.url for link in read(*arguments, **named).links]


def test_links_of_anchors_areas_and_frames_in_the_order_of_the_page():
    body = """<a href="b.html">B</a><map><area href="/area" alt="The area"></map><iframe src="frame.html" title="Inner"></iframe>
        <a href="../c">C</a><a>nothing</a><a name="x">anchor</a><img src="x.png"><script src="x.js"></script>"""
    assert read("", body).links == (
        Link(f"{ROOT}/guide/b.html", "B"),
        Link(f"{ROOT}/area", "The area"),
        Link(f"{ROOT}/guide/frame.html", "Inner"),
        Link(f"{ROOT}/c", "C"),
    )


def test_a_frameset_leads_to_its_frames():
    tree = html.document_fromstring('<html><head></head><frameset><frame src="toc.html"><frame src="main.html"></frameset></html>')
    assert [link.url for link in page_links(tree, url=URL).links] == [f"{ROOT}/guide/toc.html", f"{ROOT}/guide/main.html"]


def test_only_pages_of_the_web_are_links():
    body = "".join(
        f'<a href="{href}">x</a>'
        for href in ("javascript:x", "mailto:a@b", "tel:1", "data:,x", "#part", " #p", "http://u:p@h/", "ftp://h/")
    )
    assert addresses("", body + '<a href="http://[">x</a><a href="/ok">x</a>') == [f"{ROOT}/ok"]


def test_one_page_is_one_link_under_the_address_that_came_first():
    body = '<a href="/a/"><img src="x"></a><a href="/a#part">A</a><a href="/a/index.html?utm_source=x">again</a><a href="/b?x=1">B</a>'
    assert read("", body).links == (Link(f"{ROOT}/a/", "A"), Link(f"{ROOT}/b?x=1", "B"))


def test_a_link_is_followed_when_one_of_its_places_allows_it():
    body = '<a rel="external NoFollow" href="/a">A</a><a rel="nofollow" href="/b">B</a><a href="/b">B</a><a href="/c" rel="ugc">C</a>'
    assert [(link.url, link.nofollow) for link in read("", body).links] == [(f"{ROOT}/a", True), (f"{ROOT}/b", False), (f"{ROOT}/c", False)]


def test_text_is_words_without_markup_and_short():
    body = '<a href="/a">  The <b>bold</b>\n <!-- c -->one <img alt="picture"> </a><a href="/b">' + "word " * 500 + "</a>"
    links = read("", body).links
    assert links[0].text == "The bold one picture"
    assert len(links[1].text) == 200


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ('<base href="/other/">', f"{ROOT}/other/x"),
        ('<base href="https://cdn.example.com/v2/">', "https://cdn.example.com/v2/x"),
        ('<base href="../">', f"{ROOT}/x"),
        ('<base target="_blank"><base href="/second/"><base href="/third/">', f"{ROOT}/second/x"),
        ('<base href="javascript:x"><base href="/second/">', f"{ROOT}/guide/x"),
        ('<base href="file:///etc/">', f"{ROOT}/guide/x"),
        ('<base href="">', f"{ROOT}/guide/x"),
        ("", f"{ROOT}/guide/x"),
    ],
)
def test_the_first_base_counts(base, expected):
    assert addresses(base, '<a href="x">x</a>') == [expected]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ('<link rel="canonical" href="/c">', f"{ROOT}/c"),
        ('<link rel="alternate canonical" href="//www.example.com/c">', "https://www.example.com/c"),
        ('<base href="/v2/"><link rel="CANONICAL" href="c">', f"{ROOT}/v2/c"),
        (
            '<link rel="canonical" href="javascript:x"><link rel="canonical" href="/second"><link rel="canonical" href="/third">',
            f"{ROOT}/second",
        ),
        ('<link rel="canonical">', ""),
        ('<link rel="alternate" href="/c">', ""),
    ],
)
def test_canonical(head, expected):
    assert read(head).canonical == expected


def test_a_visitor_cannot_set_the_canonical_address():
    assert read("", '<div><link rel="canonical" href="/theirs"></div>').canonical == ""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0; url=/next", f"{ROOT}/next"),
        ("0;URL='next.html'", f"{ROOT}/guide/next.html"),
        ('5 ; url = "/next"', f"{ROOT}/next"),
        ("0, /next", f"{ROOT}/next"),
        ("0.5;url=/next", f"{ROOT}/next"),
        (";url=/next", f"{ROOT}/next"),
        ("0", ""),
        ("", ""),
        ("0;url=", ""),
        ("0;url=javascript:x", ""),
    ],
)
def test_refresh(content, expected):
    quote = "'" if '"' in content else '"'
    answer = read(f'<meta http-equiv="Refresh" content={quote}{content}{quote}>')
    assert (answer.refresh, answer.links) == (expected, ())


def test_a_slow_refresh_is_a_link_and_one_for_browsers_without_scripts_is_nothing():
    slow = read('<meta http-equiv="refresh" content="300; url=/news">')
    assert (slow.refresh, [link.url for link in slow.links]) == ("", [f"{ROOT}/news"])
    assert read('<noscript><meta http-equiv="refresh" content="0; url=/no-scripts"></noscript>').refresh == ""


@pytest.mark.parametrize(
    ("head", "header", "noindex", "nofollow"),
    [
        ('<meta name="robots" content="noindex">', "", True, False),
        ('<meta name="ROBOTS" content="NOINDEX, NoFollow">', "", True, True),
        ('<meta name="robots" content="none">', "", True, True),
        ('<meta name="robots" content="index,follow"><meta name="robots" content="nofollow">', "", False, True),
        ('<meta name="lectern" content="noindex">', "", True, False),
        ('<meta name="otherbot" content="noindex">', "", False, False),
        ('<meta name="description" content="noindex">', "", False, False),
        ("", "noindex", True, False),
        ("", "NOARCHIVE, NoFollow", False, True),
        ("", "otherbot: noindex, nofollow", False, False),
        ("", "otherbot: noindex, lectern: nofollow", False, True),
        ("", "unavailable_after: 25 Jun 2030, noindex", True, False),
        ("", "max-snippet: 20", False, False),
        ("", "", False, False),
    ],
)
def test_indexing_and_following(head, header, noindex, nofollow):
    answer = read(head, robots_header=header, agent="Lectern")
    assert (answer.noindex, answer.nofollow) == (noindex, nofollow)


def test_neighbours_in_a_series_are_links_and_other_languages_are_not():
    head = (
        '<link rel="next" href="/2"><link rel="prev" href="/0"><link rel="alternate" hreflang="de" href="/de"><link rel="icon" href="/i">'
    )
    assert addresses(head) == [f"{ROOT}/2", f"{ROOT}/0"]


def test_a_page_of_links_ends_somewhere():
    started = process_time()
    body = "".join(f'<a href="/page/{number}">page {number}</a>' for number in range(MOST_LINKS + 500))
    links = read("", body).links
    assert [links[0].url, links[-1].url, len(links)] == [f"{ROOT}/page/0", f"{ROOT}/page/{MOST_LINKS - 1}", MOST_LINKS]
    assert process_time() - started < 2


_MARKUP = [
    "<a ",
    "<base ",
    "<meta http-equiv=refresh ",
    "<link rel=canonical ",
    "href=",
    "content='0;url=",
    ">",
    "</a>",
    "'",
    '"',
    "http:",
    "//",
]


@given(st.lists(st.one_of(st.sampled_from(_MARKUP), st.text(max_size=3)), max_size=25))
def test_no_page_breaks_it(pieces):
    tree = html.document_fromstring(f"<html><body>{''.join(pieces)}</body></html>".replace("\0", ""))
    for link in page_links(tree, url=URL).links:
        assert link.url.startswith(("http://", "https://"))


def test_a_long_base_does_not_make_a_small_page_a_large_one():
    body = "".join(f'<a href="{number}">x</a>' for number in range(MOST_LINKS))
    found = read(f'<base href="/{"x" * 7900}/">', body)
    assert found.cut
    assert 0 < sum(len(link.url) for link in found.links) <= MOST_CHARACTERS
