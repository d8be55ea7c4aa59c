"""Watching a crawl, its verdicts as a file, and what it costs the database to look at a site."""

import asyncio
import csv
import time

import pytest
from django.db import connections

from tests.ingestion.api.test_events import aside, parsed
from tests.ingestion.web.conftest import advance, put, run_source, url_of
from tests.servers.site import page, paragraphs

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


def test_a_crawl_is_told_level_by_level_with_its_rate_and_what_is_left(web, site, client, async_get, monkeypatch):
    from ingestion.api import events, watching
    from ingestion.services.runs import start_run

    monkeypatch.setattr(events, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(watching, "COST_SHARE", 0)
    put(site, "/", "/a", "/b")
    put(site, "/a", "/c")
    for path in ("/b", "/c"):
        put(site, path)
    run = start_run(web())

    async def meanwhile() -> None:
        for stages in (("crawl", "extract"), ("embed", "publish"), ("crawl", "extract"), ()):
            await asyncio.sleep(0.4)
            await aside(advance, run, *stages)

    _, body = async_get(f"/api/v1/runs/{run.id}/events", client, accept="text/event-stream", meanwhile=meanwhile)
    told = [event["data"] for event in parsed(body)]
    seen = [(each["progress"]["depth"], each["progress"]["queue"]) for each in told if each["progress"]]
    assert seen[0] == (None, 0)
    assert (1, 2) in seen  # /a and /b wait
    assert (2, 1) in seen  # and then /c
    assert any(each["progress"]["per_second"] > 0 for each in told if each["progress"])
    assert told[0]["crawl"]["hosts"] == []
    assert (told[-1]["status"], told[-1]["progress"], told[-1]["crawl"]["hosts"][0]["robots"]) == ("succeeded", None, "none")


def test_a_rate_that_falls_is_told_though_nothing_else_changes(web, site, client, async_get, monkeypatch):
    from ingestion.api import events, watching
    from ingestion.services.runs import start_run

    monkeypatch.setattr(events, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(watching, "COST_SHARE", 0)
    monkeypatch.setattr(events, "KEEP_ALIVE_SECONDS", 0.3)
    put(site, "/", "/a")
    run = start_run(web())
    advance(run, "crawl", "extract", "embed", "publish")

    async def meanwhile() -> None:
        await asyncio.sleep(2.5)
        await aside(client.post, f"/api/v1/runs/{run.id}/cancel")

    _, body = async_get(f"/api/v1/runs/{run.id}/events", client, accept="text/event-stream", meanwhile=meanwhile)
    rates = [event["data"]["progress"]["per_second"] for event in parsed(body) if event["data"]["progress"]]
    assert rates[-1] < rates[0]


def test_a_preview_holds_no_connection_while_the_site_is_asked(web, site, client):
    held: list[int] = []

    def start(request) -> str:
        with connections["owner"].cursor() as cursor:
            time.sleep(0.2)
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'lectern_app'")
            held.append(cursor.fetchone()[0])
        connections.close_all()
        return page("Home", paragraphs("home"))

    source = web()
    site.put("/", start)
    assert client.post(f"{url_of(source)}/preview").json()["counts"]["new"] == 1
    assert held == [0]


def test_verdicts_of_a_site_as_csv(web, site, client, async_get):
    put(site, "/", "/a")
    put(site, "/a")
    run = run_source(web())
    _, body = async_get(f"/api/v1/runs/{run.id}/documents", client, accept="text/csv")
    rows = {row["url"]: row for row in csv.DictReader(body.decode().splitlines())}
    found, start = rows[site.url("/a")], rows[site.url("/")]
    assert (found["found_on"], found["depth"], found["http_status"]) == (site.url("/"), "1", "200")
    assert (start["found_on"], start["via"], start["verdict"]) == ("", "start", "ingested")
