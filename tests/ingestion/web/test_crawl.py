"""What a crawl reads, what it leaves out and why, and what it asks for."""

import pytest

from ingestion.models import CrawledHost, RunItem
from kb.models import Chunk, Document
from tests.ingestion.web.conftest import living, put, run_source, verdicts
from tests.servers.site import Link, noisy, page, paragraphs, redirect, refusal, text_sitemap, urlset

pytestmark = pytest.mark.django_db


def test_a_site_becomes_documents(web, site):
    put(site, "/", "/a", "b.html#part", "/a?utm_source=news")
    put(site, "/a", "/")
    put(site, "/b.html")
    source = web()
    run = run_source(source)
    assert (run.status, run.stop_reason) == ("succeeded", "completed")
    assert living(source, site) == {"/", "/a", "/b.html"}
    assert site.counts()["/a"] == 1  # its other spellings are the same page
    document = Document.objects.get(key=site.url("/a"))
    assert (document.url, document.title) == (site.url("/a"), "Page /a")
    assert paragraphs("/a")[0][:40] in Chunk.objects.filter(document=document).first().text


def test_a_second_run_embeds_nothing_and_an_edit_one_document(web, site):
    put(site, "/", "/a")
    put(site, "/a")
    source = web()
    run_source(source)
    second = run_source(source)
    assert (second.counters["unchanged"], second.counters["embeddings_computed"]) == (2, 0)
    site.put("/a", page("Page /a", [*paragraphs("/a"), "A sentence that was added to the page yesterday."]))
    third = run_source(source)
    assert (third.counters["unchanged"], third.counters["ingested"]) == (1, 1)


def test_a_page_with_a_clock_and_a_nonce_is_unchanged(web, site):
    site.put("/", noisy("Home", paragraphs("home")))
    source = web()
    run_source(source)
    assert verdicts(run_source(source), site) == {"/": "unchanged"}


@pytest.mark.parametrize(
    ("rules", "links", "expected"),
    [
        ({"path_prefix": "/docs/"}, ["/docs/a", "/blog/a"], {"/docs/a": "ingested", "/blog/a": "skipped out_of_scope"}),
        ({"exclude_patterns": ["/old/**"]}, ["/old/a", "/new"], {"/old/a": "skipped excluded", "/new": "ingested"}),
        ({"max_depth": 1}, ["/a"], {"/a": "ingested", "/a/next": "skipped too_deep"}),
        ({}, ["/picture.png"], {"/picture.png": "skipped not_a_document"}),
    ],
    ids=["prefix", "excluded", "depth", "picture"],
)
def test_why_a_link_was_not_followed(web, site, rules, links, expected):
    put(site, "/", *links)
    for link in links:
        put(site, link, f"{link}/next")
    run = run_source(web(**rules))
    assert {path: verdict for path, verdict in verdicts(run, site).items() if path in expected} == expected
    assert all(not site.requests(path) for path, verdict in expected.items() if verdict.startswith("skipped"))


def test_robots_rules_hold_and_are_shown(web, site):
    site.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", content_type="text/plain")
    put(site, "/", "/private/a", "/open")
    put(site, "/private/a")
    put(site, "/open")
    run = run_source(web())
    assert verdicts(run, site)["/private/a"] == "skipped robots"
    assert not site.requests("/private/a")
    assert site.counts()["/robots.txt"] == 1
    assert CrawledHost.objects.get(run=run).outcome == "read"


def test_robots_that_cannot_be_read_allow_nothing_and_say_so(web, site):
    site.put("/robots.txt", refusal(503))
    put(site, "/")
    run = run_source(web())
    assert verdicts(run, site) == {"/": "failed robots_unavailable"}
    assert not site.requests("/")
    assert run.status == "failed"
    assert "robots.txt" in run.error


def test_pages_of_sitemaps_are_read_though_nothing_links_to_them(web, site):
    put(site, "/")
    put(site, "/lonely")
    site.put("/sitemap.xml", urlset([site.url("/lonely"), "https://elsewhere.example/x"]), content_type="application/xml")
    run = run_source(web())
    assert verdicts(run, site) == {"/": "ingested", "/lonely": "ingested", "https://elsewhere.example/x": "skipped out_of_scope"}
    assert run.crawl_state["sitemaps"][0]["pages"] == 2


def test_a_sitemap_named_by_robots_takes_the_place_of_the_usual_one(web, site):
    site.put("/robots.txt", f"Sitemap: {site.url('/map.txt')}\n", content_type="text/plain")
    site.put("/map.txt", text_sitemap([site.url("/a")]), content_type="text/plain")
    put(site, "/")
    put(site, "/a")
    run_source(web())
    assert not site.requests("/sitemap.xml")
    assert site.requests("/a")


def test_a_redirect_is_a_verdict_and_its_target_a_page(web, site):
    put(site, "/", "/old", "/gone-away", "/slash")
    site.put("/old", redirect("/new", 301))
    site.put("/gone-away", redirect("https://elsewhere.example/", 302))
    site.put("/slash", redirect("/slash/", 301))
    put(site, "/new")
    put(site, "/slash/")
    source = web()
    run = run_source(source)
    found = verdicts(run, site)
    assert (found["/old"], found["/new"]) == ("skipped redirected", "ingested")
    assert found["/gone-away"] == "skipped redirected"
    assert living(source, site) == {"/", "/new", "/slash"}
    assert Document.objects.get(key=site.url("/slash")).url == site.url("/slash/")
    assert site.counts()["/new"] == 1


def test_redirects_in_a_circle_end(web, site):
    put(site, "/", "/a")
    site.put("/a", redirect("/b", 302))
    site.put("/b", redirect("/a", 302))
    run = run_source(web())
    assert (verdicts(run, site)["/a"], verdicts(run, site)["/b"]) == ("skipped redirected", "skipped redirected")
    assert site.counts()["/a"] == 1


def test_a_page_defers_to_its_canonical_and_stands_for_itself_where_that_gives_nothing(web, site):
    put(site, "/", "/list?page=2", "/copy")
    put(site, "/list?page=2", "/entry", canonical="/list")
    put(site, "/list")
    put(site, "/entry")
    put(site, "/copy", canonical="/missing")
    source = web()
    run = run_source(source)
    assert living(source, site) == {"/", "/list", "/entry", "/copy"}
    assert verdicts(run, site)["/list?page=2"] == "skipped duplicate_of"
    assert site.counts()["/copy"] == 1


def test_the_start_page_as_everybodys_canonical_is_a_mistake_of_a_template(web, site):
    put(site, "/", "/a")
    put(site, "/a", canonical="/")
    source = web()
    run_source(source)
    assert living(source, site) == {"/", "/a"}


def test_links_that_ask_not_to_be_followed_are_not(web, site):
    site.put("/", page("Home", paragraphs("home"), links=[Link("/a", rel="nofollow"), "/b"]))
    put(site, "/a")
    put(site, "/b", "/a")
    run = run_source(web())
    assert verdicts(run, site)["/a"] == "ingested"  # another link leads there
    assert RunItem.objects.get(run=run, key=site.url("/a")).depth == 2


def test_the_page_limit_ends_the_crawl_and_says_so(web, site):
    put(site, "/", *(f"/{number}" for number in range(6)))
    for number in range(6):
        put(site, f"/{number}")
    run = run_source(web(max_pages=3))
    assert (run.stop_reason, run.counters["ingested"]) == ("page_limit", 3)
    assert run.counters["skipped"] == {"page_limit": 4}
    assert any("4 addresses that it had found were left" in warning for warning in run.warnings)


def test_a_site_with_exactly_as_many_pages_as_allowed_is_complete(web, site):
    put(site, "/", "/a", "/b")
    put(site, "/a")
    put(site, "/b")
    assert run_source(web(max_pages=3)).stop_reason == "completed"


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])  # the database's clock stands still inside a transaction
def test_what_the_servers_answers_mean(web, site):
    answers = {"/401": 401, "/404": 404, "/410": 410, "/500": 500}
    put(site, "/", *answers)
    for path, status in answers.items():
        site.put(path, refusal(status))
    run = run_source(web())
    found = verdicts(run, site)
    assert {path: found[path] for path in answers} == {
        "/401": "failed unauthorized",
        "/404": "skipped gone",
        "/410": "skipped gone",
        "/500": "failed server_error",
    }
    assert run.status == "partial"


def test_a_linked_file_is_a_document_unless_the_source_says_no(web, site):
    site.put("/", page("Home", paragraphs("home"), links=["/notes.txt"]))
    site.put("/notes.txt", "Thirty days of leave a year.\n", content_type="text/plain")
    source = web()
    run_source(source)
    assert living(source, site) == {"/", "/notes.txt"}
    other = web(name="Other", include_linked_files=False)
    assert verdicts(run_source(other), site)["/notes.txt"] == "skipped linked_file"


def test_pages_that_are_not_there_are_told_where_the_site_answers_everything_with_a_page(web, site):
    put(site, "/", "/a", "/missing")
    put(site, "/a")
    site.fault(
        lambda request: request.path not in ("/", "/a", "/robots.txt", "/sitemap.xml"), page("Not found", ["There is no such page here."])
    )
    run = run_source(web())
    assert verdicts(run, site) == {"/": "ingested", "/a": "ingested", "/missing": "skipped soft_404"}


def test_a_private_address_behind_a_redirect_is_refused(web, site):
    put(site, "/", "/hop")
    site.put("/hop", redirect("http://127.0.0.2:9/", 302))
    run = run_source(web(same_site_only=False))
    found = {item.url: item for item in RunItem.objects.filter(run=run)}
    assert found["http://127.0.0.2:9/"].reason in ("address_refused", "robots_unavailable")
    assert run.status == "partial"


def test_a_run_over_a_site_that_is_down_fails_with_the_reason(web, site, settings):
    source = web()
    site.stop()
    run = run_source(source)
    assert (run.status, run.stop_reason) == ("failed", "")
    assert run.error


def test_a_site_whose_every_address_gets_the_maintenance_page_loses_nothing(web, site):
    put(site, "/", "/a")
    put(site, "/a")
    source = web(settings={"tombstone_after_missed_runs": 1})
    run_source(source)
    fault = site.fault(lambda request: True, page("Back soon", ["We are working on the site. It is back in an hour."]))
    run = run_source(source)
    assert verdicts(run, site)["/"] == "failed same_for_all"
    assert living(source, site) == {"/", "/a"}
    assert Document.objects.get(key=site.url("/a")).missed_runs == 0
    fault.lift()
    assert run_source(source).counters["unchanged"] == 2


def test_a_page_made_by_scripts_is_told_also_where_every_address_gets_the_same_shell(web, site):
    shell = '<!doctype html><html><head><title>App</title><script src="/app.js"></script></head><body><div id="root"></div></body></html>'
    site.fault(lambda request: request.path not in ("/robots.txt", "/sitemap.xml"), shell)
    run = run_source(web())
    assert verdicts(run, site)["/"] == "failed needs_javascript"
    assert not Document.objects.exists()
