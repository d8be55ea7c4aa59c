"""A preview of a web source: what a run would do, told without writing anything."""

from decimal import Decimal

import pytest

from ingestion.models import CrawledHost, EmbeddedText, IngestionRun, ProviderCall, RunItem
from kb.models import Blob, Document
from tests.ingestion.web.conftest import put, run_source, url_of
from tests.servers.site import page, paragraphs, redirect, refusal, urlset

pytestmark = pytest.mark.django_db
TABLES = (Blob, CrawledHost, Document, EmbeddedText, IngestionRun, ProviderCall, RunItem)


def preview(client, source) -> dict:
    answer = client.post(f"{url_of(source)}/preview")
    assert answer.status_code == 200, answer.content
    return answer.json()


def changes(seen: dict, site) -> dict[str, str]:
    origin = site.url("").rstrip("/")
    return {row["name"].removeprefix(origin) or "/": row["change"] for row in seen["documents"]}


def test_it_says_what_a_run_then_does_and_writes_nothing(web, site, client, hashing_model):
    type(hashing_model).objects.filter(id=hashing_model.id).update(price_per_million_tokens=Decimal("20"))
    site.put("/robots.txt", "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.01\n", content_type="text/plain")
    site.put("/sitemap.xml", urlset([site.url("/lonely")]), content_type="application/xml")
    put(site, "/", "/a", "/private/x", "https://elsewhere.example/", "/old", "/missing", "/copy", "/picture.png", "/note.txt")
    for path in ("/a", "/lonely", "/new"):
        put(site, path)
    put(site, "/copy", canonical="/a")
    site.put("/old", redirect("/new", 301))
    site.put("/note.txt", "Thirty days of leave a year.\n", content_type="text/plain")
    source = web()
    before = [table.objects.count() for table in TABLES]
    seen = preview(client, source)
    assert [table.objects.count() for table in TABLES] == before
    assert (seen["complete"], seen["stopped"]) == (True, None)
    assert changes(seen, site) == dict.fromkeys(("/", "/a", "/lonely", "/new", "/note.txt"), "new")
    assert seen["skipped"] == {"gone": 1, "robots": 1, "out_of_scope": 1, "redirected": 1, "duplicate_of": 1, "not_a_document": 1}
    assert {row["reason"]: row["url"] for row in seen["skipped_addresses"]}["robots"] == site.url("/private/x")
    (host,) = seen["crawl"]["hosts"]
    assert (host["robots"], host["status"], host["crawl_delay"]) == ("read", 200, 0.01)
    assert [(each["outcome"], each["pages"]) for each in seen["crawl"]["sitemaps"]] == [("read", 1)]
    assert not site.requests("/private/x")

    counters = run_source(source).counters
    assert counters["skipped"] == seen["skipped"]
    assert counters["ingested"] == seen["counts"]["new"]
    assert (counters["chunks"], counters["embeddings_computed"]) == (seen["chunks"], seen["embeddings"])
    assert Decimal(seen["cost"]) == Decimal(20) * seen["tokens"] / 1_000_000


def test_new_changed_unchanged_and_gone(web, site, client):
    put(site, "/", "/same", "/edited", "/gone")
    for path in ("/same", "/edited", "/gone"):
        put(site, path)
    source = web(settings={"tombstone_after_missed_runs": 1, "cost_per_thousand_segments": 2})
    run_source(source)
    put(site, "/", "/same", "/edited", "/gone", "/new")
    put(site, "/new")
    site.put("/edited", page("Page /edited", [*paragraphs("/edited"), "A sentence that was added to the page yesterday."]))
    site.put("/gone", refusal(404))
    seen = preview(client, source)
    assert seen["counts"] == {"new": 1, "changed": 1, "gone": 1, "failed": 0, "unchanged": 2}
    assert seen["skipped"] == {}
    gone = [row for row in seen["documents"] if row["change"] == "gone"]
    assert (gone[0]["name"], gone[0]["error"]) == (site.url("/gone"), "A run would remove it.")
    counters = run_source(source).counters
    assert (counters["removed"], counters["embeddings_computed"]) == (1, seen["embeddings"])
    assert Decimal(seen["cost"]) == Decimal(counters["cost"]) == Decimal(2) * seen["embeddings"] / 1000  # the model has no price


def test_a_page_that_defers_to_nothing_stands_for_itself(web, site, client):
    put(site, "/", "/copy", "/other")
    put(site, "/copy", canonical="/missing")
    put(site, "/other", canonical="/copy")
    source = web()
    seen = preview(client, source)
    assert seen["counts"]["new"] == run_source(source).counters["ingested"] == 3


def test_a_site_that_concludes_nothing_is_told_and_nothing_is_gone(web, site, client):
    put(site, "/", "/a")
    put(site, "/a")
    source = web(settings={"tombstone_after_missed_runs": 1})
    run_source(source)
    put(site, "/")
    site.put("/sitemap.xml", refusal(503))
    seen = preview(client, source)
    assert seen["counts"]["gone"] == 0
    assert "concludes nothing" in seen["warnings"][-1]
    site.put("/robots.txt", refusal(503))
    silent = preview(client, source)
    assert changes(silent, site) == {"/": "failed"}
    assert "robots.txt could not be read" in silent["warnings"][0]


@pytest.mark.parametrize(
    ("rules", "most", "stopped"), [({"max_pages": 2}, 50, "web.max_pages is 2"), ({}, 3, "at most 3 pages")], ids=["run", "preview"]
)
def test_a_bound_ends_it_and_says_which(web, site, client, monkeypatch, rules, most, stopped):
    from ingestion.sources.web import preview as looks

    monkeypatch.setattr(looks, "MAX_PAGES", most)
    put(site, "/", *(f"/{number}" for number in range(5)))
    for number in range(5):
        put(site, f"/{number}")
    seen = preview(client, web(**rules))
    assert seen["complete"] is False
    assert stopped in seen["stopped"]
    assert seen["counts"]["new"] == rules.get("max_pages", most)


def test_the_time_ends_it_also_while_it_waits_for_its_turn(web, site, client, monkeypatch):
    from ingestion.sources.web import preview as looks

    monkeypatch.setattr(looks, "MAX_SECONDS", 1.0)
    site.put("/robots.txt", "User-agent: *\nCrawl-delay: 30\n", content_type="text/plain")
    put(site, "/", "/a")
    seen = preview(client, web())
    assert (seen["complete"], seen["documents"]) == (False, [])
    assert seen["seconds"] < 5


def test_an_unchanged_page_at_the_last_depth_is_asked_for_conditionally(web, site, client):
    put(site, "/", "/a")
    put(site, "/a")
    source = web(max_depth=1)
    run_source(source)
    seen = preview(client, source)
    assert seen["counts"]["unchanged"] == 2


def test_pages_that_a_run_would_have_a_browser_make_are_left_to_it(web, site, client):
    shell = '<!doctype html><html><head><title>App</title><script src="/app.js"></script></head><body><div id="root"></div></body></html>'
    put(site, "/", "/app")
    site.put("/app", shell)
    seen = preview(client, web(render="auto"))
    assert changes(seen, site) == {"/": "new", "/app": "failed"}
    assert seen["complete"] is False
    assert "browser" in seen["stopped"]
