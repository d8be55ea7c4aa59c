"""A name that leads to another address each time it is asked for: no request of ours reaches the one that is not allowed."""

import socket
import threading
from collections.abc import Iterator

import pytest

from ingestion.models import IngestionRun, RunItem
from kb.models import Document
from tests.ingestion.web.conftest import put, run_source, url_of

pytestmark = pytest.mark.django_db
NAME = "rebinding.example"


@pytest.fixture
def secret(site) -> Iterator[list[str]]:
    """A service that only this machine reaches, at the site's port of another address; who connects to it."""
    came: list[str] = []
    listening = socket.create_server(("127.0.0.2", site.port))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            came.append("connected")
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    yield came
    listening.close()


@pytest.fixture
def rebound(site, secret, monkeypatch):
    """`rebound(*answers)`: what the name leads to, one answer after the other, over and over. The system's resolver is what is replaced."""
    asked: list[str] = []
    resolve = socket.getaddrinfo

    def answer_with(*answers: tuple[str, ...]) -> list[str]:
        def getaddrinfo(host, port, *rest, **options):
            name = host.decode() if isinstance(host, bytes) else host
            if name != NAME:
                return resolve(host, port, *rest, **options)
            found = answers[len(asked) % len(answers)]
            asked.append(name)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0)) for address in found]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return answer_with


def crawled(web, site):
    for path in ("/", "/a", "/b", "/c"):
        put(site, path, "/a", "/b", "/c")
    return web(start_url=f"http://{NAME}:{site.port}/")


@pytest.mark.parametrize(
    "answers",
    [
        [("127.0.0.1",), ("127.0.0.2",)],
        [("127.0.0.1", "127.0.0.2")],
        [("127.0.0.2", "127.0.0.1"), ("127.0.0.1",)],
        [("127.0.0.1",), ("127.0.0.1",), ("127.0.0.2",)],
    ],
    ids=["in turn", "both at once", "both, then one", "after robots.txt"],
)
def test_a_crawl_never_connects_to_what_is_not_allowed(web, site, secret, rebound, client, answers):
    source = crawled(web, site)
    asked = rebound(*answers)
    run_source(source)
    client.post(f"{url_of(source)}/preview")
    assert asked
    assert secret == []


def test_a_name_that_is_bound_elsewhere_later_loses_no_document_also_not_when_a_deletion_is_confirmed(web, site, secret, rebound, client):
    source = crawled(web, site)
    rebound(("127.0.0.1",))
    run = run_source(source)
    assert Document.objects.filter(source=source, tombstoned_at=None).count() == 4
    rebound(("127.0.0.2",))
    down = run_source(source)
    assert (down.status, down.counters["removed"]) == ("failed", 0)
    planned = [str(pk) for pk in Document.objects.filter(source=source).values_list("id", flat=True)]
    Document.objects.filter(source=source).update(seen_at=run.created_at.replace(year=2020))
    IngestionRun.objects.filter(id=run.id).update(status="needs_confirmation", planned_removals=planned)
    answer = client.post(f"/api/v1/runs/{run.id}/confirm").json()
    assert (answer["documents"], answer["kept"]) == (0, 4)
    assert set(RunItem.objects.filter(run=answer["deletion_run_id"]).values_list("reason", flat=True)) <= {
        "robots_unavailable",
        "address_refused",
    }
    assert secret == []
