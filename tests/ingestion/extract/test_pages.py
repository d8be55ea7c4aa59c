"""Pages as a server gave them: one parse gives links, rules, metadata and Markdown."""

import pytest

from ingestion.extract import Served

SENTENCE = "<p>Paragraph {} says something about lecterns that is long enough to be taken for the text of a document.</p>"
PROSE = "".join(SENTENCE.format(n) for n in range(6))
URL = "https://docs.example/guide/start.html"


def page(body: str, head: str = "") -> str:
    return f"<!DOCTYPE html><html lang=en><head><title>Start</title>{head}</head><body>{body}</body></html>"


def urls(extracted) -> list[str]:
    return [url for url, _, _ in extracted.page["links"]]


@pytest.fixture
def served(read):
    def _served(content, *, url=URL, charset="", robots_header="", declared_type="text/html"):
        return read(content, name=url, declared_type=declared_type, served=Served(url, charset, robots_header, "Lectern"))

    return _served


def test_links_and_markdown_come_from_one_request(served):
    body = f'<nav><a href="/menu">Menu</a></nav><main><h1>Start</h1>{PROSE}<p>See <a href="next.html">the next page</a>.</p></main>'
    extracted = served(page(body))
    assert urls(extracted) == ["https://docs.example/menu", "https://docs.example/guide/next.html"]
    assert "[the next page](https://docs.example/guide/next.html)" in extracted.markdown
    assert "Menu" not in extracted.markdown
    assert not extracted.page["needs_javascript"]


def test_base_resolves_links_and_markdown(served):
    body = f'<main>{PROSE}<p>See <a href="next.html">the next page</a>.</p></main>'
    extracted = served(page(body, '<base href="/v2/">'))
    assert extracted.page["base"] == "https://docs.example/v2/"
    assert urls(extracted) == ["https://docs.example/v2/next.html"]
    assert "(https://docs.example/v2/next.html)" in extracted.markdown


@pytest.mark.parametrize(
    "content",
    [
        page('<nav><a href="/a"><img src="a.png"></a><a href="/b"><img src="b.png"></a></nav>'),
        page('<p hidden><a href="/a">a</a></p><div style="display:none"><a href="/b">b</a></div>'),
        page(
            '<div id="root"></div>'
            '<noscript>You need to enable JavaScript. <a href="/a">a</a> <a href="/b">b</a></noscript><script src="/m.js"></script>'
        ),
    ],
    ids=["pictures", "hidden", "shell"],
)
def test_pages_without_text_keep_their_links(served, content):
    extracted = served(content)
    assert extracted.markdown == ""
    assert extracted.title == "Start"
    assert urls(extracted) == ["https://docs.example/a", "https://docs.example/b"]


@pytest.mark.parametrize("content", ["<!-- nothing -->", "   \n", "<html></html>"])
def test_pages_of_nothing(served, content):
    extracted = served(content)
    assert (extracted.markdown, extracted.page["links"]) == ("", [])


@pytest.mark.parametrize(
    ("header", "noindex", "nofollow"),
    [
        ("", False, False),
        ("noindex", True, False),
        ("none", True, True),
        ("nofollow", False, True),
        ("otherbot: noindex", False, False),
        ("lectern: noindex", True, False),
    ],
)
def test_robots_header(served, header, noindex, nofollow):
    extracted = served(page(f'{PROSE}<a href="/a">a</a>'), robots_header=header)
    assert (extracted.page["noindex"], extracted.page["nofollow"]) == (noindex, nofollow)
    assert urls(extracted) == ["https://docs.example/a"]


CHINESE = "知识库是一个存储知识的地方，用户可以在其中搜索文档并得到引用。" * 3
GERMAN = "Größe und Übersicht für alle, die schöne Bücher über Straßen lesen möchten. " * 3
RUSSIAN = "База знаний хранит документы, по которым можно искать и получать ссылки. " * 3
JAPANESE = "知識ベースは文書を保存し、検索して引用を得る場所です。" * 3


@pytest.mark.parametrize(
    ("text", "encoding", "charset", "meta"),
    [
        (CHINESE, "gbk", "", ""),
        (CHINESE, "gbk", "GBK", ""),
        (CHINESE, "gbk", "", "gb2312"),
        (CHINESE, "gbk", "iso-8859-1", ""),
        (CHINESE, "gbk", "utf-8", "gbk"),
        (CHINESE, "gbk", "iso-8859-1", "gb2312"),
        (CHINESE, "utf-8", "gbk", "gbk"),
        (CHINESE, "utf-8", "iso-8859-1", ""),
        (CHINESE, "gb18030", "no-such-charset", "gb18030"),
        (GERMAN, "iso-8859-1", "iso-8859-1", "utf-8"),
        (GERMAN, "iso-8859-1", "", ""),
        (GERMAN, "cp1252", "utf-8", ""),
        (GERMAN, "utf-8", "windows-1252", "iso-8859-1"),
        (GERMAN, "utf-8-sig", "iso-8859-1", "iso-8859-1"),
        (GERMAN, "utf-16", "utf-8", "utf-8"),
        (RUSSIAN, "cp1251", "windows-1251", ""),
        (RUSSIAN, "cp1251", "iso-8859-1", "windows-1251"),
        (RUSSIAN, "koi8-r", "koi8-r", "windows-1251"),
        (RUSSIAN, "cp1251", "", ""),
        (JAPANESE, "shift_jis", "Shift_JIS", ""),
        (JAPANESE, "iso-2022-jp", "iso-2022-jp", ""),
        (JAPANESE, "euc_jp", "iso-8859-1", "euc-jp"),
    ],
)
def test_charsets(served, text, encoding, charset, meta):
    head = f'<meta charset="{meta}">' if meta else ""
    content = page(f"<main><p>{text}</p></main>", head).encode(encoding)
    assert text.strip() in served(content, charset=charset).markdown


@pytest.mark.parametrize(
    ("url", "declared_type", "content", "media_type"),
    [
        ("https://x.example/readme.md", "text/html", page(PROSE), "text/html"),
        ("https://x.example/manual.pdf", "text/html; charset=utf-8", page(PROSE), "text/html"),
        ("https://site.pl", "text/html", page(PROSE), "text/html"),
        ("https://x.example/main.c", "", page(PROSE), "text/html"),
        ("https://x.example/readme.md", "text/plain", "# Title\n\nA text that is long enough.", "text/markdown"),
        ("https://x.example/notes", "text/plain", "A text about <b> tags that is no page.", "text/plain"),
        ("https://x.example/data.json?v=2", "application/json", '{"key": "a value of it"}', "application/json"),
    ],
)
def test_what_was_served_decides(served, url, declared_type, content, media_type):
    extracted = served(content, url=url, declared_type=declared_type)
    assert extracted.media_type == media_type
    assert (extracted.page is not None) == (media_type == "text/html")


def test_through_the_child(sandbox, tmp_path):
    path = tmp_path / "page"
    path.write_text(page(f'<a href="/a">a</a>{PROSE}'))
    request = {"op": "extract", "path": str(path), "name": URL, "declared_type": "text/html"}
    reply = sandbox.run(request | {"page": {"url": URL, "charset": "utf-8", "robots_header": "noindex"}})
    assert reply["extracted"]["page"]["links"] == [["https://docs.example/a", "a", False]]
    assert reply["extracted"]["page"]["noindex"]
    assert sandbox.run(request)["extracted"]["page"] is None
    chunk = {"settings": {}, "tokenizer": "estimate", "reserve": 10}
    assert sandbox.run(request | {"page": {"url": URL}, "chunk": chunk})["passages"]
    path.write_text(page('<a href="/a"></a>'))
    reply = sandbox.run(request | {"page": {"url": URL}, "chunk": chunk})
    assert (reply["extracted"]["markdown"], reply["passages"]) == ("", [])
