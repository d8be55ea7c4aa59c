"""Pages that scripts make: named as such, and with `web.render: auto` made by a browser and then read like any page."""

from dataclasses import replace

import pytest
from django.core.management import call_command

from ingestion import children
from ingestion.models import RunItem
from ingestion.render import Renderer, missing
from ingestion.sources.web import rendering
from kb.models import Chunk, Document
from tests.ingestion.web.conftest import living, run_source, verdicts
from tests.servers.site import page, paragraphs

pytestmark = pytest.mark.django_db

SHELL = '<!doctype html><title>App</title><div id="root"></div><script src="/static/js/main.js"></script>'
# A program of one page: its routes are data, and what is no route shows a view of its own.
PROGRAM = """
fetch('/api' + location.pathname).then(a => a.ok ? a.json() : null).then(page => {
  document.title = page ? page.title : 'Nothing here';
  root.innerHTML = page
    ? `<h1>${page.title}</h1><p>${page.text}</p>` + page.links.map(l => `<a href="${l}">${l}</a>`).join(' ')
    : '<h1>Nothing here</h1><p>There is no page at this address. Perhaps it was moved to another place, or the link is wrong.</p>';
});
"""


@pytest.fixture(scope="module")
def browser():
    if lacking := missing():
        pytest.skip(lacking)
    with Renderer() as renderer:
        yield renderer


@pytest.fixture
def rendered(browser, monkeypatch):
    """The browser of this process, with time for a machine that does ten other things."""
    monkeypatch.setattr(children, "_browsers", [browser])
    monkeypatch.setattr(rendering, "LIMITS", replace(rendering.LIMITS, max_seconds=60))


def program(site, **pages: list[str]) -> None:
    """A site that answers every address with the same shell."""
    site.put("/*", SHELL)
    site.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", content_type="text/plain")
    site.put("/sitemap.xml", "", status=404)
    site.put("/static/js/main.js", PROGRAM, content_type="text/javascript")
    site.put("/api/*", "", status=404)
    for name, links in pages.items():
        path = "/" if name == "home" else f"/{name}"
        text = " ".join(paragraphs(name))
        quoted = ", ".join(f'"{link}"' for link in links)
        site.put(f"/api{path}", f'{{"title": "Page {name}", "text": "{text}", "links": [{quoted}]}}', content_type="application/json")


def test_without_rendering_the_pages_are_named(web, site):
    program(site, home=["/guide"], guide=[])
    run = run_source(web())
    assert verdicts(run, site) == {"/": "failed needs_javascript"}
    assert "web.render" in RunItem.objects.get(run=run, key=site.url("/")).error
    assert not site.requests("/static/js/main.js")


def test_with_rendering_they_are_documents(web, site, rendered):
    program(site, home=["/guide", "/gone"], guide=["/"])
    source = web(render="auto")
    run = run_source(source)
    assert verdicts(run, site) == {"/": "ingested", "/guide": "ingested", "/gone": "skipped soft_404"}
    assert living(source, site) == {"/", "/guide"}
    guide = Document.objects.get(key=site.url("/guide"))
    assert guide.title == "Page guide"
    assert paragraphs("guide")[0][:40] in Chunk.objects.filter(document=guide).first().text
    assert RunItem.objects.get(run=run, key=site.url("/guide")).response["rendered"]["requests"] == 3
    # Unchanged text is not embedded again, although the shell's validators said nothing about it.
    second = run_source(source)
    assert (second.counters["unchanged"], second.counters["embeddings_computed"]) == (2, 0)


def test_pages_with_text_are_not_rendered(web, site, rendered):
    site.put("/", page("Home", paragraphs("home"), links=["/app"]))
    site.put("/app", SHELL)
    site.put("/static/js/main.js", f"root.innerHTML = `<h1>App</h1><p>{' '.join(paragraphs('app'))}</p>`", content_type="text/javascript")
    run = run_source(web(render="auto"))
    assert verdicts(run, site) == {"/": "ingested", "/app": "ingested"}, RunItem.objects.values_list("key", "error")
    assert (len(site.requests("/")), len(site.requests("/app"))) == (1, 2)


def test_scripts_obey_robots_and_a_page_that_stays_empty_says_so(web, site, rendered):
    site.put("/robots.txt", "User-agent: *\nDisallow: /static/\n", content_type="text/plain")
    site.put("/", SHELL)
    run = run_source(web(render="auto"))
    assert verdicts(run, site) == {"/": "failed needs_javascript"}
    assert "in a browser too" in RunItem.objects.get(run=run).error
    assert not site.requests("/static/*")


def test_where_scripts_go_on_to_another_page_is_a_redirect(web, site, rendered):
    site.put("/", f"{SHELL}<script>location.replace('/welcome')</script>")
    site.put("/static/js/main.js", "", content_type="text/javascript")
    site.put("/welcome", page("Welcome", paragraphs("welcome")))
    run = run_source(web(render="auto"))
    assert verdicts(run, site) == {"/": "skipped redirected", "/welcome": "ingested"}


def test_without_a_browser_the_verdict_says_what_to_install(web, site, monkeypatch):
    monkeypatch.setattr(children, "_browsers", [])
    monkeypatch.setenv("PATH", "/nowhere")
    program(site, home=[])
    run = run_source(web(render="auto"))
    assert verdicts(run, site) == {"/": "failed needs_javascript"}
    assert "apt install chromium" in RunItem.objects.get(run=run).error or "make render" in RunItem.objects.get(run=run).error


def test_the_check_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    call_command("check", deploy=True, tags=["render"])
    assert "are not rendered here" in capsys.readouterr().err
