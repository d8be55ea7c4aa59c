"""What people do to runs of a site: cancel and purge."""

import threading
import time
from uuid import uuid4

import pytest
from django.db import connections

from ingestion.models import IngestionRun, RunItem
from ingestion.stages import slices
from tests.ingestion.web.conftest import living, put, run_source, url_of
from tests.servers.site import page, paragraphs

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


def test_a_cancelled_crawl_stops_asking_and_writes_nothing_more(web, site, client):
    from ingestion.services.runs import start_run

    put(site, "/", *(f"/{number}" for number in range(300)))
    site.put("/*", page("Slow", paragraphs("slow")), delay=0.2)
    run = start_run(web(request_delay_ms=20))
    stages = ("crawl", "extract", "crawl")

    def work() -> None:
        for stage in stages:
            slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
        connections.close_all()

    worker = threading.Thread(target=work)
    worker.start()
    until = time.monotonic() + 20
    while len(site.requests()) < 12 and time.monotonic() < until:
        time.sleep(0.02)
    assert client.post(f"/api/v1/runs/{run.id}/cancel").status_code == 200
    cancelled = time.monotonic()
    asked, written = len(site.requests()), list(RunItem.objects.filter(run=run).order_by("id").values("id", "stage", "requests", "blob"))
    worker.join(10)
    assert not worker.is_alive()
    assert time.monotonic() - cancelled < 3
    assert len(site.requests()) - asked < 60  # some forty come in a second
    assert list(RunItem.objects.filter(run=run).order_by("id").values("id", "stage", "requests", "blob")) == written
    stood = len(site.requests())
    time.sleep(0.5)
    assert len(site.requests()) == stood
    assert IngestionRun.objects.get(id=run.id).status == "cancelled"


def test_a_purge_reads_everything_again_and_pays_for_nothing_unless_asked(web, site, client):
    put(site, "/", "/a")
    put(site, "/a")
    source = web()
    first = run_source(source)
    assert client.delete(f"{url_of(source)}/documents").json()["documents"] == 2
    assert living(source, site) == {"/", "/a"}  # they go on answering
    second = run_source(source)
    assert (second.counters["ingested"], second.counters["unchanged"]) == (2, 0)
    assert (second.counters["embeddings_computed"], second.counters["requests"]) == (0, 0)
    client.delete(f"{url_of(source)}/documents?reembed=true")
    third = run_source(source)
    assert third.counters["embeddings_computed"] == first.counters["embeddings_computed"] > 0
