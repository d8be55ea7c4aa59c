"""A slow host does not keep a crawl from the others."""

import time

import pytest

from ingestion.sources.web.seats import Seats
from tests.ingestion.web.conftest import advance, put
from tests.servers.site import Site, page, paragraphs, refusal

QUICK, SLOW, NEW = "http://quick.example", "http://slow.example", "http://new.example"


def seats(*taken: str, slow: tuple[str, ...] = (SLOW,), most: int = 12) -> Seats:
    return Seats(taken, most=most, limit=lambda host: 12, answered={QUICK, SLOW}, slow=slow)


@pytest.mark.parametrize(
    ("rule", "now", "host", "room"),
    [
        ("a quick host alone gets all", seats(), QUICK, 12),
        ("what is taken is taken", seats(*[QUICK] * 10), QUICK, 2),
        ("a host that has not answered gets few", seats(), NEW, 3),
        ("a slow host gets few", seats(), SLOW, 3),
        ("and no more when it has them", seats(*[SLOW] * 3), SLOW, 0),
        ("then the others get the rest", seats(*[SLOW] * 3), QUICK, 9),
        ("slow ones together get half", seats(*["http://a.example"] * 5, slow=(SLOW, "http://a.example")), SLOW, 1),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_room(rule, now, host, room):
    assert now.room(host) == room


def test_where_nobody_else_waits_a_slow_host_gets_half():
    now = seats(*[SLOW] * 3)
    now.alone = True
    assert (now.room(SLOW), now.room(NEW)) == (3, 6)
    assert seats(*[SLOW] * 3).full() == [SLOW]


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_a_host_that_does_not_answer_holds_up_no_other(web, site, settings):
    from ingestion.services.runs import start_run

    with Site() as slow:
        settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": (*site.allowed, *slow.allowed)})
        slow.put("/*", page("Slow", paragraphs("slow")), delay=8.0)
        slow.put("/robots.txt", refusal(404))
        paths = [f"/{number}" for number in range(30)]
        # The slow host's addresses come first.
        put(site, "/", *(slow.url(path) for path in paths), *paths)
        for path in paths:
            put(site, path)
        run = start_run(web(same_site_only=False))
        settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": (*site.allowed, *slow.allowed), "slice_seconds": 4.0})
        started = time.monotonic()
        advance(run, "crawl", "extract", "crawl")
        assert time.monotonic() - started < 14
        assert sum(bool(site.requests(path)) for path in paths) == 30
        assert len(slow.requests("/*")) < 12
