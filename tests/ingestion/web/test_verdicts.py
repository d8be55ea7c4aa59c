"""What runs, explanations and previews say of pages that are gone, and of a start page that gives nothing."""

import pytest

from ingestion.crawl.links import MOST_LINKS
from tests.ingestion.web.conftest import living, put, run_source, url_of, verdicts
from tests.servers.site import page, paragraphs, redirect, refusal

pytestmark = pytest.mark.django_db


def why(client, source, url: str) -> str:
    return client.get(f"{url_of(source)}/why", {"url": url}).json()["answer"]


def documents(client, source, **filters: str) -> dict[str, dict]:
    rows = client.get(f"{url_of(source)}/documents", filters).json()["items"]
    return {row["name"]: row for row in rows}


def test_a_dead_link_is_no_failure_of_a_run(web, site):
    put(site, "/", "/dead", "/never")
    site.put("/dead", refusal(410))
    run = run_source(web())
    assert (run.status, run.counters["failed"]) == ("succeeded", {})
    assert run.counters["skipped"] == {"gone": 2}


def test_a_first_miss_is_told_as_one_and_a_removal_as_one(web, site, client):
    put(site, "/", "/a", "/b")
    for path in ("/a", "/b"):
        put(site, path)
    source = web()
    run_source(source)
    site.put("/a", refusal(401))
    run_source(source)
    site.put("/a", refusal(404))
    put(site, "/", "/a")
    assert run_source(source).status == "succeeded"
    row = documents(client, source)[site.url("/a")]
    assert (row["state"], row["error"], row["missed_runs"], row["removed_at"]) == ("indexed", None, 1, None)
    for path, said in (("/a", "404"), ("/b", "")):
        answer = why(client, source, path)
        assert "It is in the knowledge base" in answer
        assert "1 complete run in a row did not find it any more; after 2 it is removed" in answer
        assert said in answer
        assert "failed" not in answer
    assert run_source(source).counters["removed"] == 2
    for path in ("/a", "/b"):
        assert why(client, source, path).startswith("It was removed on ")
    assert "404" in why(client, source, "/a")
    assert documents(client, source).keys() == {site.url("/")}
    gone = documents(client, source, state="gone")
    assert gone.keys() == {site.url("/a"), site.url("/b")}
    assert all(row["removed_at"] and row["error"] is None for row in gone.values())
    assert len(documents(client, source, state="all")) == 3
    assert client.get(f"{url_of(source)}/documents?state=lost").status_code == 400


def test_a_purge_counts_what_will_be_taken_in_anew(web, site, client):
    put(site, "/", "/a")
    put(site, "/a")
    source = web(settings={"tombstone_after_missed_runs": 1})
    run_source(source)
    put(site, "/")
    assert run_source(source).counters["removed"] == 1
    assert client.delete(f"{url_of(source)}/documents").json()["documents"] == 1


@pytest.mark.parametrize("status", [404, 401])
def test_a_start_page_that_is_not_there_fails_the_run_and_is_told(web, site, client, status):
    site.put("/", refusal(status))
    source = web()
    seen = client.post(f"{url_of(source)}/preview").json()
    run = run_source(source)
    assert (run.status, run.stop_reason) == ("failed", "")
    assert str(status) in run.error
    for warnings in (seen["warnings"], run.warnings):
        assert any("The start page" in warning and str(status) in warning for warning in warnings)


def test_a_start_page_that_robots_txt_forbids_is_told(web, site):
    site.put("/robots.txt", "User-agent: *\nDisallow: /\n", content_type="text/plain")
    put(site, "/")
    assert any("The start page" in warning and "disallows" in warning for warning in run_source(web()).warnings)


def test_a_preview_of_a_site_that_is_down_is_not_complete(web, site, client):
    put(site, "/", "/a")
    put(site, "/a")
    source = web(settings={"tombstone_after_missed_runs": 1})
    run_source(source)
    site.stop()
    seen = client.post(f"{url_of(source)}/preview").json()
    assert (seen["complete"], seen["counts"]["gone"]) == (False, 0)
    assert "could not be read" in seen["stopped"]


def test_a_preview_says_that_a_page_with_too_many_links_concludes_nothing(web, site, client):
    put(site, "/", "/a")
    put(site, "/a")
    source = web(settings={"tombstone_after_missed_runs": 1})
    run_source(source)
    put(site, "/", *(f"https://elsewhere.example/{number}" for number in range(MOST_LINKS + 1)))
    seen = client.post(f"{url_of(source)}/preview").json()
    assert seen["counts"]["gone"] == 0
    assert any("links that are read of a page" in warning for warning in seen["warnings"])


def test_a_disabled_source_may_be_looked_at_and_says_that_it_is_disabled(web, site, client):
    put(site, "/")
    source = web()
    type(source).objects.filter(id=source.id).update(enabled=False)
    seen = client.post(f"{url_of(source)}/preview").json()
    assert seen["counts"]["new"] == 1
    assert "disabled" in seen["warnings"][0]


def test_two_pages_that_move_to_one_are_missed_before_they_go(web, site):
    put(site, "/", "/a", "/b")
    for path in ("/a", "/b"):
        put(site, path)
    source = web()
    run_source(source)
    for path in ("/a", "/b"):
        site.put(path, redirect("/c", 301))
    put(site, "/c")
    assert run_source(source).counters["removed"] == 0
    assert living(source, site) == {"/", "/a", "/b", "/c"}
    assert run_source(source).counters["removed"] == 2


def test_a_page_with_a_nul_in_it_is_read_as_browsers_do(web, site):
    site.put("/", page("Home", paragraphs("home")).replace("</p>", "\0</p>", 1).encode(), content_type="text/html")
    run = run_source(web())
    assert verdicts(run, site) == {"/": "ingested"}


def test_why_says_what_is_missing_of_the_question(web, client):
    source = web()
    missing = client.get(f"{url_of(source)}/why").json()
    assert "`url` is missing" in missing["detail"]
    assert "at most" in client.get(f"{url_of(source)}/why", {"url": "/" + "a" * 9000}).json()["detail"]
