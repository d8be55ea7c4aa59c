"""Mistakes that other crawlers are known for, replayed against a site that provokes them."""

import gzip

import pytest

from ingestion.models import RunItem
from ingestion.sources.web import crawl
from kb.models import Chunk, Document
from tests.ingestion.web.conftest import living, run_source, verdicts
from tests.servers.site import Answer, bomb, index, page, paragraphs, redirect, refusal, urlset

pytestmark = pytest.mark.django_db
MAINTENANCE = Answer(body=page("Back soon", ["We are back in an hour."]).encode())
IMPATIENT = {"tombstone_after_missed_runs": 1}


def put(site, path: str, *links: str, **options) -> None:
    site.put(path, page(f"Page {path}", paragraphs(path), links=links, **options))


def test_spelling_variants_of_an_address_are_fetched_once(web, site):
    put(site, "/", "/a", "/a/", "/./a", "/b/../a", "/a#x", "/%61", "/a?utm_campaign=mail", site.url("/a").replace("http", "HTTP", 1))
    put(site, "/a")
    run_source(web())
    assert sum(request.path.strip("/") in ("a", "%61") for request in site.log) == 1


def test_no_slash_is_added_to_an_address(web, site):
    put(site, "/", "/a")
    put(site, "/a")
    site.put("/a/", refusal(404))
    source = web()
    run_source(source)
    assert not site.requests("/a/")
    assert Document.objects.get(source=source, key=site.url("/a")).url == site.url("/a")


def test_the_body_of_a_404_is_not_indexed(web, site):
    put(site, "/", "/missing")
    site.put("/missing", Answer(status=404, body=page("Missing", paragraphs("lost")).encode()))
    source = web()
    run_source(source)
    assert living(source, site) == {"/"}
    assert not Chunk.objects.filter(text__contains="Missing").exists()


def test_a_base_address_moves_the_links(web, site):
    put(site, "/", "a", base="/deep/")
    put(site, "/deep/a")
    source = web()
    run_source(source)
    assert living(source, site) == {"/", "/deep/a"}
    assert not site.requests("/a")


def test_a_page_in_gbk_that_only_says_so_in_its_meta_tag_is_read(web, site):
    text = "水库的水位每天早上由值班人员记录，超过警戒线时立即通知下游的居民和管理部门。"
    site.put("/", page("水库", [text] * 3, charset="gbk", language="zh").encode("gbk"), content_type="text/html")
    source = web()
    run_source(source)
    assert text[:12] in Chunk.objects.get(document__source=source, ordinal=0).text


def test_a_gzipped_child_of_a_sitemap_index_is_read(web, site):
    put(site, "/")
    put(site, "/listed")
    site.put("/sitemap.xml", index([site.url("/pages.xml.gz")]), content_type="application/xml")
    site.put("/pages.xml.gz", gzip.compress(urlset([site.url("/listed")])), content_type="application/octet-stream")
    source = web()
    run_source(source)
    assert living(source, site) == {"/", "/listed"}


@pytest.mark.parametrize("host", ["2130706433", "[::ffff:7f00:1]", "0x7f.1", "localhost", "127.1"])
def test_an_address_of_this_machine_is_refused_however_it_is_written(web, site, host):
    put(site, "/", f"http://{host}:9/secret")
    source = web(same_site_only=False)
    run = run_source(source)
    refused = RunItem.objects.filter(run=run).exclude(key=site.url("/")).get()
    assert (refused.verdict, refused.reason) == ("failed", "robots_unavailable")
    assert run.hosts.exclude(origin=site.url("").rstrip("/")).get().error
    assert living(source, site) == {"/"}


def test_a_sitemap_at_a_private_address_is_refused_and_the_run_concludes_nothing(web, site):
    put(site, "/", "/a")
    put(site, "/a")
    source = web(settings=IMPATIENT)
    run_source(source)
    site.put("/robots.txt", "Sitemap: http://127.0.0.2:9/sitemap.xml\n", content_type="text/plain")
    put(site, "/")
    site.remove("/a")
    run = run_source(source)
    assert run.crawl_state["sitemaps"][0]["outcome"] == "unreadable"
    assert living(source, site) == {"/", "/a"}


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_a_site_that_fails_after_some_pages_is_left_alone_and_loses_nothing(web, site, monkeypatch):
    monkeypatch.setattr(crawl, "FAILURES_IN_A_ROW", 5)
    paths = [f"/{number}" for number in range(40)]
    put(site, "/", *paths)
    for path in paths:
        put(site, path)
    source = web(settings=IMPATIENT)
    run_source(source)
    site.forget()
    site.fault(lambda request: request.path.strip("/").isdigit(), refusal(503), after=20)
    run = run_source(source)
    assert len(site.requests(status=503)) <= 5 + crawl.WINDOW
    assert run.counters["removed"] == 0
    assert any("failed many times in a row" in warning for warning in run.warnings)
    assert len(living(source, site)) == 41


@pytest.mark.parametrize(
    "fault",
    [
        refusal(500),
        refusal(401),
        Answer(body=b"<urlset><url><loc>http://x/"),
        Answer(body=page("Back soon", ["We are back in an hour."]).encode()),
    ],
    ids=["5xx", "401", "cut short", "a page instead"],
)
def test_a_sitemap_that_was_not_read_whole_removes_nothing(web, site, fault):
    put(site, "/")
    put(site, "/listed")
    site.put("/sitemap.xml", urlset([site.url("/listed")]), content_type="application/xml")
    source = web(settings=IMPATIENT)
    run_source(source)
    site.put("/sitemap.xml", fault)
    run = run_source(source)
    assert (run.status, run.counters["removed"]) == ("succeeded", 0)
    assert living(source, site) == {"/", "/listed"}
    site.remove("/sitemap.xml")  # now there is none, which is an answer
    run_source(source)
    assert living(source, site) == {"/"}


def test_conditional_requests_are_made_only_where_a_304_hides_no_links(web, site):
    site.put("/", page("Home", paragraphs("home"), links=["/leaf"]), etag="auto")
    site.put("/leaf", page("Leaf", paragraphs("leaf"), links=["/below"]), etag="auto")
    source = web(max_depth=1)
    run_source(source)
    site.forget()
    run = run_source(source)
    assert [request.status for request in site.requests("/")] == [200]
    assert [request.status for request in site.requests("/leaf")] == [304]
    assert run.counters["unchanged"] == 2


def test_a_new_validator_of_an_unchanged_page_replaces_the_old_one(web, site):
    site.put("/", page("Home", paragraphs("home"), links=["/leaf"]), etag="rotating")
    put(site, "/leaf")
    source = web()
    run_source(source)
    first = Document.objects.get(source=source, key=site.url("/")).etag
    assert run_source(source).counters["unchanged"] == 2
    assert first
    assert Document.objects.get(source=source, key=site.url("/")).etag not in ("", first)


def test_a_bomb_is_too_large_and_the_page_it_replaced_stays(web, site):
    put(site, "/", "/a")
    put(site, "/a")
    source = web(settings=IMPATIENT)
    run_source(source)
    site.put("/a", bomb("gzip", size=64 * 1024 * 1024))
    run = run_source(source)
    assert verdicts(run, site)["/a"] == "failed too_large"
    assert living(source, site) == {"/", "/a"}


def test_what_moved_for_good_does_not_answer_twice(web, site):
    put(site, "/", "/old")
    put(site, "/old")
    source = web()
    run_source(source)
    site.put("/old", redirect("/new", 301))
    site.put("/new", page("Page /old", paragraphs("/old")))
    run_source(source)
    assert living(source, site) == {"/", "/new"}


def test_a_login_that_takes_the_place_of_every_page_removes_nothing(web, site):
    put(site, "/", "/a", "/b", "/c")
    for path in ("/a", "/b", "/c"):
        put(site, path)
    source = web(settings=IMPATIENT)
    run_source(source)
    for path in ("/a", "/b", "/c"):
        site.put(path, redirect("/login", 302))
    site.put("/login", page("Log in", ["Please log in with your account to read the pages of this site."]))
    run = run_source(source)
    assert run.counters["removed"] == 0
    assert {"/a", "/b", "/c"} <= living(source, site)


def test_pages_below_one_that_cannot_be_read_now_are_not_missed(web, site):
    put(site, "/", "/guide")
    put(site, "/guide", "/guide/a")
    put(site, "/guide/a", "/guide/b")
    put(site, "/guide/b")
    source = web(settings=IMPATIENT)
    run_source(source)
    fault = site.fault("/guide", refusal(401))
    assert run_source(source).counters["removed"] == 0
    assert living(source, site) == {"/", "/guide", "/guide/a", "/guide/b"}
    fault.lift()
    put(site, "/guide")
    assert run_source(source).counters["removed"] == 2
    assert living(source, site) == {"/", "/guide"}
