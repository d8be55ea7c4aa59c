"""Which pages need a browser. A short page that is all there must not be taken for one of them."""

import pytest

from ingestion.extract.html_shell import needs_javascript, shell_marks
from ingestion.extract.html_tree import drop_hidden, parse_html

CHUNK = '<script src="/static/js/main.8f3a2b1c.js"></script>'
ANALYTICS = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script><script>window.dataLayer=[]</script>'
JQUERY = '<script src="/js/jquery-3.6.0.min.js"></script>'
WORDS = "The lectern stands in the reading room of the library and holds one open book for whoever comes by to read in it aloud. "


def page(body: str, *, title: str = "Shop", head: str = "") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


SHELLS = {
    "react": page(f'<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>{CHUNK}'),
    "vue": page(
        "<noscript><strong>We're sorry but shop doesn't work properly without JavaScript enabled.</strong></noscript><div id=\"app\"></div>"
        '<script src="/js/chunk-vendors.1a2b3c4d.js"></script>'
    ),
    "vite": page('<div id="app"></div>', head='<script type="module" crossorigin src="/assets/index-4f2d.js"></script>'),
    "next": page(
        '<div id="__next"></div><script src="/_next/static/chunks/main.js"></script>'
        '<script id="__NEXT_DATA__" type="application/json">{}</script>'
    ),
    "nuxt": page('<div id="__nuxt"><div class="loader">Loading…</div></div><script src="/_nuxt/entry.js"></script>'),
    "angular": page(
        '<app-root>Loading...</app-root><script src="runtime.1.js" type="module"></script><script src="main.2.js" type="module"></script>'
    ),
    "own element": page("<my-shop></my-shop><script src='/shop.js'></script>"),
    "plea in the open": page(f"<div>Please enable JavaScript to use this website.</div>{CHUNK}"),
    "plea in German": page(f"<noscript>Bitte aktivieren Sie JavaScript in Ihrem Browser.</noscript><div></div>{CHUNK}"),
    "plea in Chinese": page(f"<noscript>请启用JavaScript以继续</noscript><div class=x></div>{CHUNK}"),
    "footer around the root": page(f'<div id="root"></div><footer>© 2026 Shop Ltd. <a href="/imprint">Imprint</a></footer>{CHUNK}'),
    "bundle alone": page(f"<div class='spinner'></div>{CHUNK}"),
    "code in the page": page(f"<div></div><script>{'var a = 1;' * 3000}</script>"),
    "cloudflare": page(
        "<h1>shop.example</h1><p>Verifying you are human. This may take a few seconds.</p>"
        "<noscript>Enable JavaScript and cookies to continue</noscript>"
        "<p>shop.example needs to review the security of your connection before proceeding.</p><script>window._cf_chl_opt={}</script>",
        title="Just a moment...",
    ),
    "datadome": page(
        "<p id='cmsg'>Please enable JS and disable any ad blocker</p><script src='https://ct.captcha-delivery.com/c.js'></script>"
    ),
    "incapsula": page("<iframe src='/x'></iframe><script src='/_Incapsula_Resource?SWJIYLWA=1'></script>"),
}
PAGES = {
    "one sentence": page("<p>Closed on Mondays.</p>"),
    "one sentence with analytics": page(f"<p>Closed on Mondays.</p>{ANALYTICS}{JQUERY}"),
    "moved": page(f'<p>This page has moved to <a href="/new">its new place</a>.</p>{JQUERY}'),
    "short, rendered on the server": page(
        f'<div id="__next"><main><h1>Opening hours</h1><p>Daily from nine to five.</p></main></div>{CHUNK}'
    ),
    "short, with a plea for statistics": page(f"<noscript>Enable JavaScript to be counted.</noscript><p>{WORDS}</p>{CHUNK}"),
    "about the language": page(f"<h1>Enable JavaScript</h1><p>To enable JavaScript, open the settings. {WORDS}{WORDS}</p>{ANALYTICS}"),
    "long, with an empty root": page(f'<div id="root"></div><p>{WORDS * 3}</p>{CHUNK}'),
    "menu of links": page('<div id="app"></div>' + "".join(f'<a href="/{n}">Chapter {n}</a> ' for n in range(8)) + CHUNK),
    "empty": page("<p></p>"),
    "picture": page(f'<img src="a.jpg" alt="The reading room">{CHUNK}'),
    "frames": "<html><head><title>f</title></head><frameset cols=20%,80%><frame src=a.html><frame src=b.html></frameset></html>",
    "short title of a challenge": page(f"<article><p>{WORDS * 6}</p></article>{ANALYTICS}", title="Just a moment in time"),
    "heading with a bundle": page(f"<h1>Under construction</h1>{CHUNK}"),
    "short Chinese page": page(f"<p>图书馆每天九点开门，下午五点关门。</p>{CHUNK}"),
    "protected, but all there": page(f"<p>{WORDS * 6}</p><script>window.awsWafCookieDomainList=[]</script>"),
}


def needs(content: str) -> bool:
    tree = parse_html(content)
    marks = shell_marks(tree)
    drop_hidden(tree)
    return needs_javascript(marks, tree)


@pytest.mark.parametrize("content", SHELLS.values(), ids=SHELLS)
def test_shells(content):
    assert needs(content)


@pytest.mark.parametrize("content", PAGES.values(), ids=PAGES)
def test_pages(content):
    assert not needs(content)


def test_a_shell_is_no_document(read):
    from config.errors import ExtractionError
    from ingestion.extract import Served

    extracted = read(SHELLS["cloudflare"], name="https://shop.example/", declared_type="text/html", served=Served("https://shop.example/"))
    assert extracted.page["needs_javascript"]
    assert extracted.markdown == ""
    with pytest.raises(ExtractionError, match="JavaScript") as caught:
        read(SHELLS["react"], name="shop.html")
    assert (caught.value.reason, caught.value.retires) == ("needs_javascript", True)
