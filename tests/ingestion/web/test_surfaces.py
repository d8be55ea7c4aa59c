"""What a person or a program sees of a crawl: the run, its verdicts, and why a page is not there."""

import pytest

from ingestion.models import RunItem
from tests.ingestion.web.conftest import advance, put, run_source, url_of
from tests.servers.site import redirect, refusal, urlset

pytestmark = pytest.mark.django_db


def test_a_run_shows_hosts_sitemaps_and_requests(web, site, client):
    site.put("/robots.txt", f"Sitemap: {site.url('/map.xml')}\nUser-agent: *\nCrawl-delay: 0.01\n", content_type="text/plain")
    site.put("/map.xml", urlset([site.url("/a")]), content_type="application/xml")
    put(site, "/", "/a")
    put(site, "/a")
    source = web()
    run = run_source(source)
    seen = client.get(f"/api/v1/runs/{run.id}").json()
    assert seen["crawl"]["hosts"] == [
        {"origin": site.url("").rstrip("/"), "robots": "read", "status": 200, "crawl_delay": 0.01, "error": None}
    ]
    assert seen["crawl"]["sitemaps"] == [{"url": site.url("/map.xml"), "outcome": "read", "pages": 1, "problem": None}]
    assert (seen["crawl"]["same_for_all"], seen["progress"]) == (False, None)
    assert seen["counters"]["http_requests"] == len(site.requests())
    (listed,) = client.get(f"{url_of(source)}/runs").json()["items"]
    assert "crawl" not in listed


def test_verdicts_say_where_an_address_was_found_and_where_it_leads(web, site, client):
    put(site, "/", "/old", "/private")
    site.put("/old", redirect("/new", 301))
    put(site, "/new")
    run = run_source(web(exclude_patterns=["/private"]))
    rows = {row["url"]: row for row in client.get(f"/api/v1/runs/{run.id}/documents").json()["items"]}
    start, old, new = rows[site.url("/")], rows[site.url("/old")], rows[site.url("/new")]
    assert (start["via"], start["depth"], start["found_on"], start["http_status"]) == ("start", 0, None, 200)
    assert (old["via"], old["found_on"], old["http_status"], old["target"]) == ("link", site.url("/"), 301, site.url("/new"))
    assert (new["via"], new["depth"], new["found_on"], new["requests"]) == ("redirect", 1, site.url("/old"), 1)
    excluded = client.get(f"/api/v1/runs/{run.id}/documents?reason=excluded&q=/private").json()["items"]
    assert [(row["url"], row["http_status"], row["requests"]) for row in excluded] == [(site.url("/private"), None, 0)]
    assert client.get(f"/api/v1/runs/{run.id}").json()["counters"]["skipped"] == {"excluded": 1, "redirected": 1}


def test_why_a_page_is_not_there(web, site, client):
    site.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", content_type="text/plain")
    put(site, "/", "/a", "/private/x", "/broken")
    put(site, "/a")
    site.put("/broken", refusal(404))
    source = web(exclude_patterns=["/old/**"])

    def why(url: str) -> dict:
        answer = client.get(f"{url_of(source)}/why", {"url": url})
        assert answer.status_code == 200, answer.content
        return answer.json()

    assert why("/a")["answer"] == "The source has not run yet."
    run = run_source(source)
    there = why(site.url("/a/?utm_source=news#part"))
    assert there["key"] == site.url("/a")
    assert "It is in the knowledge base" in there["answer"]
    assert (there["runs"][0]["run_id"], there["runs"][0]["verdict"]["verdict"]) == (str(run.id), "ingested")
    assert there["document"]["missed_runs"] == 0
    excluded = why("/old/a")
    assert (excluded["refusal"]["reason"], excluded["answer"]) == ("excluded", excluded["refusal"]["text"])
    private = why("/private/x")
    assert (private["refusal"], private["robots"]["refusal"]["reason"]) == (None, "robots")
    assert "disallows" in private["answer"]
    assert "404" in why("/broken")["answer"]
    unknown = why("/nowhere")
    assert (unknown["runs"][0]["verdict"], unknown["document"]) == (None, None)
    assert "No run came to it" in unknown["answer"]
    for url in ("", "javascript:alert(1)"):
        assert client.get(f"{url_of(source)}/why", {"url": url}).status_code == 400


def test_why_needs_a_site(client, source):
    assert client.get(f"{url_of(source)}/why", {"url": "/a"}).status_code == 409


def test_progress_of_a_crawl_says_depth_queue_and_rate(web, site, client, monkeypatch):
    from ingestion.services import progress
    from ingestion.services.runs import start_run

    put(site, "/", "/a", "/b")
    put(site, "/a", "/c")
    run = start_run(web())
    waiting = client.get(f"/api/v1/runs/{run.id}").json()["progress"]
    assert waiting == {"per_second": 0.0, "eta_seconds": None, "depth": None, "queue": 0}
    advance(run, "crawl", "extract", "embed", "publish")
    seen = client.get(f"/api/v1/runs/{run.id}").json()["progress"]
    assert (seen["depth"], seen["queue"]) == (1, 2)
    assert seen["per_second"] > 0
    assert seen["eta_seconds"] is None  # one page tells nothing of how long the others take
    monkeypatch.setattr(progress, "KNOWN_AFTER", 1)
    monkeypatch.setattr(progress, "KNOWN_AFTER_SECONDS", 0)
    seen = client.get(f"/api/v1/runs/{run.id}").json()["progress"]
    assert seen["eta_seconds"] == pytest.approx(2 / seen["per_second"], abs=2)
    assert RunItem.objects.filter(run=run, stage="found").count() == 2


def test_the_admin_shows_a_site_and_answers_for_it(web, site, alice, client):
    from django.test import Client
    from django.urls import reverse

    put(site, "/", "/a", "https://elsewhere.example/")
    put(site, "/a")
    source = web()
    run = run_source(source)
    alice.is_staff = True
    alice.save()
    browser = Client()
    browser.force_login(alice)
    page = browser.get(reverse("admin:ingestion_ingestionrun_change", args=[run.id])).content.decode()
    assert "/robots.txt" in page
    assert "/sitemap.xml" in page
    rows = browser.get(f"{reverse('admin:ingestion_runitem_changelist')}?run__id__exact={run.id}&reason=out_of_scope").content.decode()
    assert "elsewhere.example" in rows
    assert site.url("/") in rows  # where it was found
    shown = reverse("admin:kb_source_change", args=[source.id])
    offered = browser.get(shown).content.decode()
    assert "Why is a page missing?" in offered
    assert str(run.id) in offered
    why = browser.get(reverse("admin:kb_source_why", args=[source.id]), {"url": "https://elsewhere.example/"}).content.decode()
    assert "is not the site of the start" in why
    preview = reverse("admin:kb_source_preview", args=[source.id])
    assert "Nothing is written" in browser.get(preview).content.decode()
    assert "out_of_scope" in browser.post(preview).content.decode()
