"""Sites that would lose documents, stop a run or fill the memory of its workers."""

from dataclasses import replace

import pytest

from ingestion import pacing
from ingestion.crawl.admission import REMEMBERED_LENGTH, Admission
from ingestion.crawl.fetch import Answer as Fetched
from ingestion.crawl.links import MOST_LINKS
from ingestion.crawl.scope import Scope
from ingestion.models import CrawledHost, IngestionRun, RunItem
from ingestion.plan import plan_for
from ingestion.services.runs import start_run
from ingestion.sources.web import crawl, frontier
from ingestion.sources.web.hosts import MOST_KNOWN, RunHosts
from ingestion.sources.web.requests import Asked
from ingestion.stages.slices import Slice
from kb.models.base import key_hash
from tests.ingestion.web.conftest import advance, living, put, run_source, verdicts
from tests.servers.site import Answer, page, paragraphs, redirect, refusal, urlset

pytestmark = pytest.mark.django_db
IMPATIENT = {"tombstone_after_missed_runs": 1}
LONG = "/b?" + "|" * 8000  # its identity, escaped, is three times as long


@pytest.mark.parametrize(
    "between",
    [page("List", paragraphs("list"), links=["/d"]).replace("<head>", '<head><meta name="robots" content="noindex">'), redirect("/d")],
    ids=["a list that is not indexed", "a redirect"],
)
def test_what_an_unread_page_leads_to_over_a_page_that_is_no_document_stays(web, site, between):
    put(site, "/", "/p")
    put(site, "/p", "/between")
    site.put("/between", between)
    put(site, "/d")
    source = web(settings=IMPATIENT)
    run_source(source)
    assert living(source, site) == {"/", "/p", "/d"}
    site.put("/p", refusal(401))
    run_source(source)
    assert living(source, site) == {"/", "/p", "/d"}
    put(site, "/p")
    run_source(source)
    assert living(source, site) == {"/", "/p"}


def test_a_link_behind_those_that_are_read_of_a_page_is_not_taken_for_gone(web, site):
    others = [f"/{number}.png" for number in range(MOST_LINKS)]
    put(site, "/", "/a", *others[1:])
    put(site, "/a")
    source = web(settings=IMPATIENT)
    assert run_source(source).stop_reason == "completed"
    put(site, "/", *others, "/a")
    run = run_source(source)
    assert (run.stop_reason, living(source, site)) == ("fetch_limit", {"/", "/a"})
    assert "links that are read of a page" in run.warnings[-1]


@pytest.mark.parametrize("way", ["link", "sitemap", "redirect"])
def test_an_address_that_is_too_long_once_it_is_escaped_stops_nothing(web, site, way):
    put(site, "/", "/a", LONG if way == "link" else "/r")
    put(site, "/a")
    if way == "redirect":
        site.put("/r", redirect(LONG))
    if way == "sitemap":
        site.put("/sitemap.xml", urlset([site.url(LONG)]), content_type="application/xml")
    source = web()
    assert not run_source(source).is_open
    assert living(source, site) == {"/", "/a"}


@pytest.mark.parametrize(
    "headers", [{"ETag": "x" * 1023 + " y"}, {"Last-Modified": "x" * 63 + " y"}], ids=lambda headers: next(iter(headers))
)
def test_a_validator_that_was_cut_at_a_space_can_be_sent(web, site, headers):
    put(site, "/", "/a")
    site.put("/a", Answer(body=page("A", paragraphs("a")), headers=headers))
    source = web(max_depth=1)
    run_source(source)
    assert verdicts(run_source(source), site)["/a"] == "unchanged"


def test_a_date_that_is_none_in_retry_after_stops_nothing(web, site):
    put(site, "/", "/a")
    site.put("/a", Answer(body=page("A", paragraphs("a")), headers={"Retry-After": "Thu, 31 Dec 99999999999999999999 23:59:59 GMT"}))
    source = web()
    assert run_source(source).status == "succeeded"
    assert living(source, site) == {"/", "/a"}


def test_an_address_that_another_reader_refuses_meanwhile_is_admitted_all_the_same(web, site):
    run = start_run(web())
    key = site.url("/a")
    refused = frontier.Found(key, key, "link", 1, None, "nofollow", "The link asks not to be followed.")
    frontier._insert(run, [(key_hash(key), refused)])  # between the look and the insert of the other
    frontier._insert(run, [(key_hash(key), replace(refused, reason="", text=""))])
    frontier._insert(run, [(key_hash(key), refused)])
    assert list(RunItem.objects.filter(run=run).values_list("stage", "verdict", "reason", "error")) == [("found", "", "", "")]


def test_few_hosts_are_kept_in_memory_and_all_obeyed(web, site):
    run = start_run(web())
    hosts = RunHosts(run, web=plan_for(run).web, agent="Lectern")
    for number in range(MOST_KNOWN + 5):
        body = b"User-agent: *\nDisallow: /\n"
        answer = Fetched("", 200, {}, body, False, "text/plain", "", "", "", "", None, 0.0)
        hosts.remember(f"http://{number}.example", Asked("", answer, None, 1))
    assert not hosts.rows
    assert hosts.known("http://0.example") is None
    assert not hosts.get("http://0.example").allows("http://0.example/x")
    assert CrawledHost.objects.filter(run=run).count() == MOST_KNOWN + 5


def test_long_addresses_are_judged_without_being_kept_and_count_once():
    admission = Admission(Scope("http://h.example/"))
    long = "http://h.example/" + "x" * REMEMBERED_LENGTH + "?"
    assert [admission.judge(f"{long}date=2024-01-{day:02}").reason for _ in range(40) for day in range(1, 29)] == [""] * 40 * 28
    assert admission._known.cache_info().currsize == 0


@pytest.mark.parametrize("is_prepared", [False, True], ids=["before the first page", "between pages"])
def test_a_turn_that_is_farther_away_than_a_slice_is_left_to_the_sweep(web, site, monkeypatch, is_prepared):
    given_back = []
    give_back = crawl.give_back
    monkeypatch.setattr(crawl, "give_back", lambda items: (given_back.append(items), give_back(items)))
    put(site, "/", "/a", "/b")
    run = start_run(web())
    if is_prepared:
        advance(run, "crawl", "extract")
    asked = len(site.log)
    pacing.push_back(site.url("").rstrip("/"), 60)
    given_back.clear()
    run = IngestionRun.objects.get(id=run.id)
    assert crawl.work(run, Slice("crawl", "token", run)) is False
    assert len(given_back) <= 1 + is_prepared
    assert len(site.log) == asked
