"""What the scriptable site's builders make: pages, sitemaps, traps."""

import re
from html import unescape
from xml.etree import ElementTree

import httpx
import lxml.html
import pytest
import trafilatura

from tests.servers.site import (
    Link,
    Site,
    atom,
    calendar,
    growing_query,
    index,
    noisy,
    page,
    paragraphs,
    repeating_path,
    rss,
    spiral,
    text_sitemap,
    urlset,
)

URLS = ["http://example.com/a?x=1&y=2", "http://example.com/b"]


def test_the_main_text_of_a_page_is_what_was_written():
    text = paragraphs("pumps", 5)
    html = page("Pumps & valves", text, navigation=["/", "/about"], links=[Link("/next", "The next chapter")])
    found = trafilatura.extract(html)
    assert all(part in found for part in text)
    assert "All rights reserved" not in found
    assert trafilatura.extract_metadata(html).title == "Pumps & valves"


def test_prose_is_the_same_for_the_same_seed_only():
    assert paragraphs(1) == paragraphs(1) != paragraphs(2)
    assert len(set(paragraphs(1, 20))) == 20


def test_the_head_says_what_it_is_told_to_say():
    tree = lxml.html.fromstring(
        page(
            "T",
            links=["/a", Link("/b", rel="nofollow")],
            base="/base/",
            canonical="http://example.com/t",
            refresh="0; url=/c",
            robots="noindex",
            frames=["/frame"],
            charset="gbk",
        )
    )
    assert tree.xpath("//a[not(@rel)]/@href") == ["#content", "/a"]
    assert tree.xpath("//a[@rel='nofollow']/@href") == ["/b"]
    assert tree.xpath("//base/@href") == ["/base/"]
    assert tree.xpath("//link[@rel='canonical']/@href") == ["http://example.com/t"]
    assert tree.xpath("//meta[@http-equiv='refresh']/@content") == ["0; url=/c"]
    assert tree.xpath("//meta[@name='robots']/@content") == ["noindex"]
    assert tree.xpath("//iframe/@src") == ["/frame"]
    assert tree.xpath("//meta/@charset") == ["gbk"]
    assert lxml.html.fromstring(page("T", charset="")).xpath("//meta/@charset") == []


def test_a_noisy_page_has_other_bytes_and_the_same_text():
    text = paragraphs("same")
    with Site() as site:
        url = site.put("/", noisy("Same", text))
        first, second = httpx.get(url).text, httpx.get(url).text
    assert first != second
    assert trafilatura.extract(first) == trafilatura.extract(second)
    assert text[0] in trafilatura.extract(first)


@pytest.mark.parametrize("options", [{}, {"prefix": "sm"}, {"charset": "utf-16"}, {"prefix": "x", "charset": "utf-16"}])
@pytest.mark.parametrize(("make", "root"), [(urlset, "urlset"), (index, "sitemapindex")])
def test_sitemaps_are_xml_that_lists_their_urls(make, root, options):
    tree = ElementTree.fromstring(make(URLS, **options))
    assert tree.tag.endswith(f"}}{root}")
    assert [found.text for found in tree.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")] == URLS


def test_feeds_and_text():
    assert [found.text for found in ElementTree.fromstring(rss(URLS)).iterfind("channel/item/link")] == URLS
    links = ElementTree.fromstring(atom(URLS)).iter("{http://www.w3.org/2005/Atom}link")
    assert [link.get("href") for link in links if link.get("rel") is None] == URLS
    assert text_sitemap(URLS).decode().split("\n") == URLS
    extra = urlset(URLS, extra='<image:image xmlns:image="i"><image:loc>/i.png</image:loc></image:image>')
    assert len(ElementTree.fromstring(extra).findall(".//{i}loc")) == 2


@pytest.mark.parametrize(
    ("where", "trap", "start", "first"),
    [
        ("/calendar/*", calendar, "/calendar/2024/12/", "/calendar/2024/11/"),
        ("/parts*", growing_query, "/parts", "/parts?colour=0"),
        ("/about/*", repeating_path, "/about/", "/about/about/us/"),
        ("/deep/*", spiral, "/deep/1", "/deep/1/2"),
    ],
)
def test_traps_lead_to_new_addresses_for_ever(where, trap, start, first):
    with Site() as site, httpx.Client(base_url=site.url("")) as client:
        site.put(where, trap)
        seen, address = set(), start
        for step in range(12):
            seen.add(address)
            answer = client.get(address)
            assert answer.status_code == 200
            hrefs = [unescape(href) for href in re.findall(r'<li><a href="([^"]*)"', answer.text)]
            found = [answer.url.join(href).raw_path.decode() for href in hrefs]
            if not step:
                assert found[0] == first
            address = next(href for href in reversed(found) if href not in seen)
        assert len(seen) == 12
