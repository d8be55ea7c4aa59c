"""What a browser makes of pages, and that it takes nothing from one page to the next."""

import re

import pytest

from ingestion.render import RenderFailed
from tests.servers.site import Answer, Site, redirect

SCRIPT = "text/javascript"


def shell(script: str) -> str:
    return f"<!doctype html><title>Shell</title><div id=root></div><script>{script}</script>"


def test_the_text_is_what_scripts_made_of_the_sites_data(render, site):
    site.put("/", '<div id="root"></div><link rel="stylesheet" href="/a.css"><script type="module" src="/a.js"></script><img src="/a.png">')
    site.put("/a.js", "import {tell} from './b.js'; const d = await (await fetch('/d.json')).json(); tell(d.text)", content_type=SCRIPT)
    site.put("/b.js", "export function tell(text) { root.innerHTML = '<h1>' + text + '</h1>' + navigator.userAgent }", content_type=SCRIPT)
    site.put("/d.json", '{"text": "Grüße, 世界"}', content_type="application/json")
    rendered = render("/")
    assert "<h1>Grüße, 世界</h1>Lectern/test" in rendered.html.decode()
    assert (rendered.url, rendered.document.status, rendered.requests) == (site.url("/"), 200, 4)
    assert set(site.counts()) == {"/", "/a.js", "/b.js", "/d.json"}  # no image, no style, no icon
    assert {request.headers["user-agent"] for request in site.log} == {"Lectern/test"}


def test_what_another_host_gives_is_read_too(render, site):
    site.put("/", shell(f"fetch('{site.url('/x', host='api.example')}').then(a => a.text()).then(t => root.textContent = t)"))
    site.put("/x", "from the other host", host="api.example", content_type="text/plain")
    assert "from the other host" in render("/").html.decode()
    assert [request.path for request in site.requests(host="api.example")] == ["/x"]


def test_a_script_moves_on_within_the_site(render, site):
    site.put("/", shell("location.replace('/next')"))
    site.put("/next", redirect("/last"))
    site.put("/last", shell("root.textContent = 'here'; history.replaceState(null, '', '/named')"))
    rendered = render("/")
    assert ("here" in rendered.html.decode(), rendered.url) == (True, site.url("/named"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(status=503), "the server answers 503"),
        (redirect("http://elsewhere.example/"), "it leads to http://elsewhere.example/"),
        (Answer(body=b"%PDF-1.7", content_type="application/pdf"), "it is no page"),
        (Answer(drop=True), "cannot be opened"),
    ],
)
def test_what_is_no_page_is_said(render, site, answer, said):
    site.put("/", answer)
    with pytest.raises(RenderFailed, match=said) as failure:
        render("/")
    assert failure.value.reason == "render_failed"


def test_web_components_are_read_as_they_are_seen(render, site):
    site.put(
        "/",
        "<doc-page><doc-box>within</doc-box><p slot=foot>at the foot</p></doc-page><script>"
        "const define = (name, html) => customElements.define(name, class extends HTMLElement {"
        "  connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = html } });"
        "define('doc-page', '<h1>Head</h1><slot></slot><doc-box>inner</doc-box><slot name=foot></slot><slot name=none>spare</slot>');"
        "define('doc-box', '<b>[<slot></slot>]</b>')</script>",
    )
    html = render("/").html.decode().partition("<script")[0]
    text = re.sub(r"<[^>]*>", " ", html)
    assert text.split() == ["Head", "[within]", "[inner]", "at", "the", "foot", "spare"]


def test_nothing_is_kept_from_one_page_to_the_next(render, site):
    site.put(
        "/",
        Answer(
            body=shell("root.textContent = `[${localStorage.seen}|${document.cookie}]`; localStorage.seen = 1; document.cookie = 'a=1'")
        ),
    )
    assert all("[undefined|]" in render("/").html.decode() for _ in range(2))
    assert not any("cookie" in request.headers for request in site.log)


def test_a_page_that_never_comes_to_rest_is_taken_as_it_stands(render, site: Site):
    site.put("/", shell("root.textContent = 'text'; setInterval(() => fetch('/poll?' + Math.random()), 50)"))
    site.put("/poll", "x")
    assert "text" in render("/").html.decode()
