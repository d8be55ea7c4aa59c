import time

import pytest

from config.errors import ExtractionError

PAGE = """<!DOCTYPE html><html lang="de-DE"><head><meta charset="utf-8"><title>Lectern | Docs</title>
<link rel="canonical" href="https://docs.example/guide/"><meta name="author" content="Ada Lovelace">
<meta property="article:published_time" content="2024-05-01"></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/blog">Blog</a></li></ul></nav>
<h1>The guide<a class="headerlink" href="#guide">¶</a></h1>
<main>{body}</main>
<footer>Imprint and privacy</footer><script>track()</script></body></html>"""
SENTENCE = "<p>Paragraph {} says something about lecterns that is long enough to be taken for the text of a document.</p>"
PROSE = "".join(SENTENCE.format(n) for n in range(6))


def page(body: str) -> str:
    return PAGE.replace("{body}", body)


def test_document_without_furniture(read):
    extracted = read(page(PROSE), name="guide.html")
    assert extracted.markdown.startswith("# The guide\n\nParagraph 0 says")
    assert extracted.markdown.count("Paragraph") == 6
    for furniture in ("Home", "Blog", "Imprint", "track", "¶"):
        assert furniture not in extracted.markdown
    assert extracted.language == "de"
    assert extracted.metadata["author"] == "Ada Lovelace"
    assert extracted.metadata["published"] == "2024-05-01"
    assert extracted.metadata["canonical"] == "https://docs.example/guide/"
    assert "guide" in extracted.title.lower() or "Lectern" in extracted.title


@pytest.mark.parametrize(
    ("body", "markdown"),
    [
        ("<h2>A <code>snake_case</code> heading</h2>", "## A `snake_case` heading"),
        ("<p>Call snake_case_name and *args, [x] &lt;y&gt;.</p>", "Call snake_case_name and *args, [x] <y>."),
        ("<ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>", "- one\n  - inner\n- two"),
        ('<ol start="3"><li>three</li><li><p>four</p></li></ol>', "3. three\n4. four"),
        ("<dl><dt>Term</dt><dd>Its meaning</dd></dl>", "- Term\n  Its meaning"),
        ("<blockquote><p>Said by another</p></blockquote>", "> Said by another"),
        ('<pre><code class="language-python">def f():\n    return 1\n</code></pre>', "```python\ndef f():\n    return 1\n```"),
        ('<div class="highlight-sql"><div class="highlight"><pre>SELECT 1</pre></div></div>', "```sql\nSELECT 1\n```"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        (
            '<p>See <a href="../b.html">the next page</a>, <a href="#x">here</a> or <a href="javascript:x()">this</a>.</p>',
            "See [the next page](https://docs.example/b.html), here or this.",
        ),
        ("<p>Very <strong>bold</strong>, half<b>bold</b>word.<br>Next line.</p>", "Very **bold**, halfboldword.\nNext line."),
        (
            "<table><caption>Sizes</caption><tr><th>Name</th><th>Size</th></tr>"
            "<tr><td rowspan=2>A</td><td>1|2</td></tr><tr><td>3</td></tr></table>",
            "Sizes\n\n| Name | Size |\n| --- | --- |\n| A | 1\\|2 |\n| A | 3 |",
        ),
        ("<table><tr><td><h3>Layout</h3><p>one</p></td><td><p>two</p></td></tr></table>", "### Layout\n\none\n\ntwo"),
        ("<p># not a heading</p>", "\\# not a heading"),
        ('<img alt="A reading desk" src="a.png"><img alt="logo" src="b.png">', "A reading desk"),
    ],
)
def test_structure(read, body, markdown):
    assert f"\n\n{markdown}\n" in read(page(PROSE + body + PROSE), name="a.html").markdown


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>SECRET</p>",
        '<div style="color:red; display : none">SECRET</div>',
        '<span style="visibility:hidden">SECRET</span>',
        '<span style="font-size:0px;">SECRET</span>',
        '<p style="opacity:0">SECRET</p>',
        '<div aria-hidden="true"><p>SECRET</p></div>',
        "<template><p>SECRET</p></template>",
        "<noscript><p>SECRET</p></noscript>",
        "<!-- SECRET -->",
        "<script>SECRET</script>",
        "<style>SECRET</style>",
        "<svg><text>SECRET</text></svg>",
        '<p style="position:absolute;left:-9999px">SECRET</p>',
        '<p style="position: absolute; top: -1000em">SECRET</p>',
        '<p style="text-indent:-9999px">SECRET</p>',
        '<p style="position:absolute;left:-100vw">SECRET</p>',
        '<p style="clip:rect(0 0 0 0);position:absolute">SECRET</p>',
        '<p style="clip-path: inset(50%)">SECRET</p>',
        '<p style="height:1px;width:1px;overflow:hidden">SECRET</p>',
        '<p style="max-height:0;overflow:hidden">SECRET</p>',
        '<p style="font-size:1px">SECRET</p>',
        '<p style="opacity:.01">SECRET</p>',
        '<p style="color:#fff;background-color:#FFF">SECRET</p>',
        '<p style="color:transparent">SECRET</p>',
        '<p style="transform:scale(0)">SECRET</p>',
        '<span class="sr-only">SECRET</span>',
        '<span class="badge visually-hidden">SECRET</span>',
        '<span class="screen-reader-text">SECRET</span>',
        "<p HIDDEN=''>SECRET</p>",
        '<p style="DISPLAY:NONE!important">SECRET</p>',
        "<textarea>SECRET</textarea>",
    ],
)
def test_hidden_text_never_comes_out(read, hidden):
    extracted = read(page(f"{PROSE}{hidden} tail{PROSE}"), name="a.html")
    assert "SECRET" not in extracted.markdown
    assert "tail" in extracted.markdown


@pytest.mark.parametrize(
    "style",
    [
        "opacity:0.9;font-size:0.8em",
        "margin-left:-100px",
        "left:-10px",
        "height:1px",
        "color:#fff;background-color:#000",
        "max-width:100%",
        "transform:scale(1.05)",
        "overflow:hidden;height:100px;width:10px",
    ],
)
def test_visible_styles_stay(read, style):
    assert "shown" in read(page(f'{PROSE}<p style="{style}">shown</p>{PROSE}'), name="a.html").markdown


def test_fuller_text_where_the_main_text_is_not_found(read):
    items = "".join(f"<div><span>Item {n}</span><span>{n} EUR</span></div>" for n in range(80))
    assert read(page(items), name="list.html").markdown.count("Item") == 80


LINK = '<a href="/other">Another page of this site</a>'
CARDS = "".join(f"<div class=card><a href=/d{n}><h3>Desk {n}</h3></a></div>" for n in range(40))
KINDS = {
    "documentation": f"""<div class=layout><div class=sidebar>{LINK * 9}</div><main>
        <div class=top><h1>Install</h1><p>How to install it.</p></div><aside class="admonition warning"><p>Mind the step.</p></aside>
        {PROSE}<section><h2>Options</h2>
        <table><tr><th>Name</th><th>Use</th></tr><tr><td>--port</td><td>Where it listens.</td></tr></table>
        <pre>lectern --port 1</pre></section></main></div>""",
    "forum": f"""<div id=topics class=sidebar>{LINK * 9}</div><div role=main>
        <div class=question><p>Why does it not stop? Mind the step. Where it listens.</p></div>
        <div id=answers><div class=answer>{PROSE}</div><div class=answer><p>Use lectern --port 1 instead.</p></div></div></div>""",
    "product": f"""<header><a href=/>Home</a>{LINK * 9}</header><div id=product><h1>Desk</h1><span class=price>12 EUR</span>
        <ul><li>Mind the step.</li><li>Where it listens.</li></ul><div class=description>{PROSE}</div>
        <table><tr><td>Model</td><td>lectern --port 1</td></tr></table></div>""",
    "listing": f"""<nav>{LINK * 9}</nav><main><h1>All desks</h1><p>Mind the step.</p>
        {CARDS}<p>Where it listens. lectern --port 1</p></main>""",
    "article without a name for itself": f"""<div><div>{LINK * 9}</div><div class=x1><h1>Desks</h1><p>Mind the step.</p>{PROSE * 4}
        <p>Where it listens.</p><pre>lectern --port 1</pre></div>
        <div class=x2><h3>Related articles</h3><ul><li>{LINK}</li><li>{LINK}</li></ul></div></div>""",
}


@pytest.mark.parametrize("body", KINDS.values(), ids=KINDS)
def test_kinds_of_pages(read, body):
    markdown = read(f"<html><head><title>t</title></head><body>{body}<footer>Imprint</footer></body></html>", name="a.html").markdown
    for wanted in ("Mind the step.", "Where it listens.", "lectern --port 1"):
        assert wanted in markdown
    assert "Another page of this site" not in markdown
    assert "Imprint" not in markdown


def test_names_that_mean_something_else(read):
    body = f'<div class="page-with-sidebar"><div class="share">{PROSE}</div></div>'
    assert read(page(body), name="a.html").markdown.count("Paragraph") == 6


def test_what_changes_with_each_request_is_no_text(read):
    def served(number: int) -> str:
        return read(
            f"""<html><head><title>Desks</title><meta name="csrf-token" content="{number}">
            <script nonce="{number}">var now={number}</script><style nonce="{number}">.a{{}}</style></head>
            <body data-request="{number}"><!-- {number} -->
            <header><a href="/">Home</a><span id="clock">{number} o'clock</span></header>
            <main id="m{number}"><h1>Desks</h1>{PROSE}
            <form><input type="hidden" name="csrf" value="{number}"><input value="{number}"><button>{number}</button></form>
            <iframe src="/ad?{number}"></iframe><img src="/pixel.gif?{number}" alt=""></main>
            <div class="site-banner">Visitor {number}</div><footer>Made in {number} ms <time>{number}</time></footer></body></html>""",
            name="a.html",
        ).markdown

    assert served(1111) == served(2222)
    assert "1111" not in served(1111)


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        (
            """<script type="application/ld+json">{"@context": "https://schema.org", "@graph": [{"@type": "Organization", "name": "X"},
            {"@type": "WebPage", "datePublished": "2020-01-01"},
            {"@type": ["NewsArticle"], "headline": "Desks", "datePublished": "2024-05-01T10:00:00Z",
            "dateModified": "2024-06-02", "author": [{"@type": "Person", "name": "Ada Lovelace"}, {"name": "Alan Turing"}]}]}</script>""",
            {"author": "Ada Lovelace, Alan Turing", "published": "2024-05-01", "modified": "2024-06-02"},
        ),
        (
            """<meta property="article:modified_time" content="2024-06-02T00:00:00+00:00">
            <meta name="dc.date" content="2024-05-01"><meta name="author" content="Ada Lovelace">
            <meta property="og:site_name" content="Lectern"><meta name="keywords" content="desks, wood">""",
            {"author": "Ada Lovelace", "published": "2024-05-01", "modified": "2024-06-02", "site": "Lectern", "tags": ["desks", "wood"]},
        ),
        ('<script type="application/ld+json">{"@type": "Article", "datePublished": </script><meta name="date" content="soon">', {}),
        ('<script type="application/ld+json">' + "[" * 100_000 + "</script>", {}),
        ('<meta name="author" content="https://example.com/ada"><meta name="date" content="2024-13-01">', {}),
    ],
)
def test_metadata(read, head, fields):
    metadata = read(f"<html><head><title>t</title>{head}</head><body><main>{PROSE}</main></body></html>", name="a.html").metadata
    assert {key: value for key, value in metadata.items() if key != "encoding"} == fields


def test_dates_of_the_document_only(read):
    clock = '<time datetime="2030-01-01">now</time>'
    body = f'<header>{clock}</header><article><time class="entry-date published" datetime="2024-05-01">May</time>{PROSE}</article>{clock}'
    metadata = read(f"<html><body>{body}</body></html>", name="a.html").metadata
    assert (metadata["published"], metadata.get("modified")) == ("2024-05-01", None)


def test_short_pages_and_fragments(read):
    assert "Hello lectern world" in read("<p>Hello lectern world</p>", name="a.html").markdown
    with pytest.raises(ExtractionError, match="too little text") as caught:
        read("<html><body><p>tiny</p><script>a long script is no text at all</script></body></html>", name="a.html")
    assert caught.value.reason == "empty"


@pytest.mark.parametrize(
    ("encoding", "head", "text"),
    [
        ("iso-8859-1", '<meta charset="iso-8859-1">', "Größe und Übersicht für alle – so".replace("–", "-")),
        ("shift_jis", '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">', "これは日本語の文章です。検索できます。"),
        ("utf-8", '<meta charset="iso-8859-1">', "Größe trotz falscher Angabe"),
        ("gb18030", "", "知识库是一个存储知识的地方,用户可以在其中搜索文档并得到引用。"),
        ("utf-16", "", "Größe und Übersicht für alle"),
    ],
)
def test_encodings(read, encoding, head, text):
    content = f"<!DOCTYPE html><html><head>{head}<title>t</title></head><body><p>{text}</p></body></html>".encode(encoding)
    assert text in read(content, name="a.html").markdown


def test_deep_nesting(read):
    content = "<html><body><p>Some text at the top of it.</p>" + "<div>" * 20_000 + "and some below" + "</div>" * 20_000
    extracted = read(content, name="a.html")
    assert extracted.markdown.startswith("Some text at the top of it.")
    assert [warning for warning in extracted.warnings if "nested more than 2,000 levels deep" in warning]


@pytest.mark.parametrize("depth", [300, 1_000, 2_000])
def test_deeply_nested_text_is_read(read, depth):
    boxes = "<div>" * depth + "<p>Inside of all of them.</p>" + "</div>" * depth
    assert read(f"<h1>Deep</h1>{boxes}<p>After</p>", name="a.html").markdown == "# Deep\n\nInside of all of them.\n\nAfter\n"


def test_a_thousand_lists_in_each_other_keep_all_items(read):
    extracted = read("".join(f"<ul><li>item{number} word" for number in range(1_000)) + "</ul>" * 1_000 + "<p>After</p>", name="a.html")
    assert all(f"item{number} word" in extracted.markdown for number in range(1_000))
    assert (extracted.markdown.endswith("After\n"), extracted.warnings) == (True, [])


@pytest.mark.parametrize(
    "content",
    [
        "<table>" + "<tr><td>cell</td><td><b>bold</b></td></tr>" * 40_000 + "</table>",
        '<div class="sidebar"><div><a href=x>words</a></div></div>' * 30_000,
        "<p>" + "<span>a b </span>" * 100_000,
        "<h2>Heading</h2><p>Some prose.</p><ul><li>one</li><li><a href='/x'>two</a></li></ul>" * 8_000,
    ],
)
def test_large_pages_take_seconds(read, content):
    started = time.process_time()
    extracted = read(f"<html><body>{content}</body></html>", name="a.html")
    assert time.process_time() - started < 15
    assert extracted.truncated
    assert 90_000 < len(extracted.markdown) <= 100_000
