"""A Postgres that accepts and never answers: requests end with a sentence, health tells of it, and afterwards all is as before."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.client import Client
from tests.fleet import Fleet, free_port, wait_for
from tests.installation import manage, on_tests_services
from tests.servers.wire import Wire

pytestmark = [pytest.mark.journey, pytest.mark.soak]

ANSWER_SECONDS = 3.0
POOL_SECONDS = 5.0


@pytest.fixture
def web(tmp_path_factory) -> Iterator[tuple[Fleet, Client, Wire]]:
    """A web process whose database lies behind a wire."""
    environment = on_tests_services("lectern_hanging", redis=13, home=tmp_path_factory.mktemp("home"))
    manage(environment, "bootstrap", "--skip-checks")
    key = manage(environment, "create_api_key", "hanging", "--role", "admin", "--skip-checks")
    port = int(re.search(r":(\d+)/", environment["DATABASE_URL"])[1])
    with Wire(port) as wire:
        behind = environment["DATABASE_URL"].replace(f":{port}/", f":{wire.port}/")
        environment |= {"DATABASE_URL": behind, "LECTERN_DB_ANSWER_SECONDS": str(ANSWER_SECONDS)}
        fleet = Fleet(environment, tmp_path_factory.mktemp("logs"), free_port())
        fleet.start("web")
        client = Client(fleet.url, key)
        wait_for(lambda: is_up(fleet), seconds=60, what="the web process")
        try:
            yield fleet, client, wire
        finally:
            wire.thaw()
            client.http.close()
            fleet.stop()


def is_up(fleet: Fleet) -> bool:
    try:
        return httpx.get(f"{fleet.url}/healthz", timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def timed(call) -> tuple[httpx.Response, float]:
    started = time.monotonic()
    return call(), time.monotonic() - started


def test_a_database_that_hangs_keeps_no_request(web):
    fleet, client, wire = web
    client.call("GET", "/knowledge-bases")
    wire.freeze()
    longest = ANSWER_SECONDS + POOL_SECONDS + 3  # a busy machine
    with ThreadPoolExecutor(12) as pool:  # more than the pool of the web process has connections
        answers = list(pool.map(lambda _: timed(lambda: client.http.get("/knowledge-bases")), range(12)))
    for answer, seconds in answers:
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json"), answer.text
        assert "database does not answer" in answer.json()["detail"]
        assert seconds < longest
    ready, seconds = timed(lambda: httpx.get(f"{fleet.url}/readyz", timeout=30, trust_env=False))
    assert ready.status_code == 503
    assert ready.json()["database"].startswith("Postgres does not answer")
    assert seconds < POOL_SECONDS + 3
    alive, seconds = timed(lambda: httpx.get(f"{fleet.url}/healthz", timeout=30, trust_env=False))
    assert (alive.status_code, seconds < 2) == (200, True)
    page, _ = timed(lambda: httpx.get(f"{fleet.url}/admin/login/", timeout=30, trust_env=False, cookies={"sessionid": "x" * 32}))
    assert page.status_code == 503
    assert "The database does not answer" in page.text
    wire.thaw()
    wait_for(lambda: client.http.get("/knowledge-bases").status_code == 200, seconds=20, what="an answer after the thaw")
