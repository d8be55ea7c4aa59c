"""Pages that say "not found" with status 200."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.crawl.soft404 import page_fingerprint

ROOT = "https://example.com"


def fingerprint(html: str | bytes, path: str = "/") -> bytes:
    return page_fingerprint(html, url=f"{ROOT}{path}")


def not_found(path: str, *, said: str, clock: str = "12:03:55", nonce: str = "8f3a9c2d") -> str:
    return f"""<!doctype html><html><head><title>{said} – Example</title><script nonce="{nonce}">var at = "{path}";</script>
        <link rel="canonical" href="{ROOT}{path}"></head><body class="p-{nonce}"><nav><a href="/">Home</a> <a href="/docs">Docs</a></nav>
        <!-- served by node-{nonce} --><h1>Sorry</h1><p>We could not find <code>{said}</code> on this site.</p>
        <style>.x{nonce} {{ color: red }}</style><footer>Request {nonce} at {clock}, page {len(path)}</footer></body></html>"""


@pytest.mark.parametrize(
    "say",
    [
        lambda path: path,
        lambda path: f"{ROOT}{path}",
        lambda path: path.rpartition("/")[2],
        lambda path: path.rpartition("/")[2].replace("-", " ").title(),
        lambda path: "this page",
    ],
)
def test_two_pages_that_say_not_found_are_equal_though_they_echo(say):
    made_up = "/lectern-qzkvw-8f3a9c2d"
    expected = fingerprint(not_found(made_up, said=say(made_up)), made_up)
    for path in ("/docs/old/getting-started", "/Install.html", "/docs/what_is-new-in-15", "/a?b=c"):
        page = not_found(path, said=say(path), clock="23:59:01", nonce="77aa01")
        assert fingerprint(page, path) == expected
        assert fingerprint(page.encode(), path) == expected


def test_an_encoded_address_is_an_echo_in_both_spellings():
    plain, encoded = "Seite über uns fehlt", "Seite %C3%BCber-uns fehlt"
    assert fingerprint(plain, "/%C3%BCber-uns") == fingerprint(encoded, "/%C3%BCber-uns") == fingerprint("Seite fehlt", "/x")
    assert fingerprint("No page &quot;r&amp;d&quot; here", "/r&d") == fingerprint("No page here", "/x")


def test_pages_with_other_words_differ():
    pages = [
        not_found("/a", said="/a"),
        not_found("/a", said="/a").replace("could not find", "have moved"),
        "<html><body><h1>Install</h1><p>Run the installer.</p></body></html>",
        "<html><body><h1>Install</h1><p>Run the uninstaller.</p></body></html>",
        "<html><title>Other</title><body><h1>Install</h1><p>Run the installer.</p></body></html>",
        "<html><body><h1>Install</h1><p>Run installer the.</p></body></html>",
    ]
    assert len({fingerprint(html, "/a") for html in pages}) == len(pages)


def test_a_menu_that_names_the_folder_of_a_page_stays():
    """Words of the address are taken out where they stand as the address, not wherever they stand."""
    with_menu = "<nav>Docs Blog Shop</nav><p>Nothing at {}</p>"
    assert fingerprint(with_menu.format("/docs/install"), "/docs/install") == fingerprint(with_menu.format("/qzkvw"), "/qzkvw")


def test_markup_alone_is_no_difference():
    assert fingerprint("<p>Not <b>found</b></p>") == fingerprint("<div>Not\n<i class='x'>found</i><br></div><SCRIPT>x < y</SCRIPT >")
    assert fingerprint("<p>a</p><script>never closed") == fingerprint("<p>a</p><!-- never closed")


def test_no_page_is_slow():
    started = process_time()
    for html in (
        "<" * 1_000_000,
        "<script>" * 200_000,
        "<!--" * 200_000,
        "<title>" * 150_000,
        "a " * 600_000,
        "&amp" * 300_000,
        "<svg " * 200_000,
    ):
        fingerprint(html, "/a/a/a/a")
    assert process_time() - started < 12


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)), st.text(max_size=40))
def test_no_content_breaks_it(html, path):
    assert fingerprint(html, f"/{path}") == fingerprint(html, f"/{path}")
    assert len(fingerprint(html, path)) == 16
