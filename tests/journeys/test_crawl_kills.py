"""A crawl whose worker is killed, and one whose Redis is emptied: both go on, and ask the site for nothing twice that was decided."""

import pytest

from tests.fleet import wait_for
from tests.servers.site import Site, page, paragraphs

PAGES = 60
pytestmark = pytest.mark.journey
WINDOW = 12  # addresses that a crawl may have taken and not committed


@pytest.fixture
def site():
    with Site() as site:
        paths = [f"/{number}" for number in range(PAGES)]
        site.put("/", page("Home", paragraphs("home"), links=paths))
        for path in paths:
            site.put(path, page(f"Page {path}", paragraphs(path)))
        yield site


@pytest.fixture
def started(client, site):
    """A run that has asked for some pages and has many left."""
    web = {"start_url": site.url("/"), "request_delay_ms": 50}
    run = client.start(*client.create_knowledge_base(f"Site at {site.port}", sources=[{"name": "web", "web": web}]))
    wait_for(lambda: len(site.requests()) > 15, seconds=60, what="the first pages")
    return run


def decided(client, run: str) -> set[str]:
    """Addresses with a verdict, or stored: nobody may ask for them again."""
    found, cursor = set(), ""
    while cursor is not None:
        answer = client.call("GET", f"/runs/{run}/documents", params={"limit": 100, **({"cursor": cursor} if cursor else {})})
        found |= {item["name"] for item in answer["items"] if item["stage"] != "found"}
        cursor = answer["next_cursor"]
    return found


def test_a_killed_crawl_repeats_at_most_what_was_in_flight(fleet, client, site, started):
    fleet.kill("main")
    before = decided(client, started)
    asked = len(site.requests())
    fleet.start("main")
    run = client.finish(started)
    assert (run["status"], run["counters"]["ingested"]) == ("succeeded", PAGES + 1)
    again = [request.path for request in site.requests()[asked:]]
    assert not {site.url(path) for path in again} & before
    assert sum(count > 1 for count in site.counts().values()) <= WINDOW
    assert max(site.counts().values()) <= 2


def test_an_emptied_redis_does_not_stop_a_crawl(fleet, client, site, started):
    from redis import Redis

    with Redis.from_url(fleet.environment["REDIS_URL"]) as broker:
        broker.flushdb()
    run = client.finish(started)
    assert (run["status"], run["counters"]["ingested"]) == ("succeeded", PAGES + 1)
    assert sum(site.counts().values()) <= PAGES + 1 + 3 + WINDOW  # robots.txt, sitemap, the made-up address
