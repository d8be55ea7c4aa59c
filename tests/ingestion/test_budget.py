"""The ceiling of a month: a run stops at it cleanly, and goes on when it is raised or the month is over, without paying anything twice."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from ingestion.models import IngestionRun, RunItem
from ingestion.services.files import store_files
from ingestion.services.runs import start_run
from ingestion.stages import slices
from kb import services, usage, versioning
from kb.models import Chunk, Document, EmbeddingModel, KnowledgeBase, Usage
from kb.schemas import dump, load_stored
from tests.servers.vendor_server import VendorServer, close_providers

pytestmark = pytest.mark.django_db
STAGES = ("crawl", "extract", "embed", "publish", "finish")


@pytest.fixture
def server(hashing_model) -> Iterator[VendorServer]:
    with VendorServer("openai", dimension=256) as running:
        services.set_secret(organization=None, name="VENDOR", value="a-key-of-the-tests")
        values = {"provider": "openai", "endpoint": running.endpoint, "credential": "VENDOR", "parameters": {"batch_texts": 2}}
        EmbeddingModel.objects.filter(id=hashing_model.id).update(**values, price_per_million_tokens=Decimal("100"))
        yield running
        close_providers()


def set_budget(actor, knowledge_base: KnowledgeBase, **budget) -> None:
    knowledge_base.refresh_from_db()
    document = {**dump(load_stored(knowledge_base.current.document)), "budget": budget}
    versioning.publish(knowledge_base, document=document, expected=knowledge_base.current.number, actor=actor)


def go(source, alice) -> IngestionRun:
    run = start_run(source, user=alice)
    for stage in STAGES:
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


@pytest.fixture
def files(server, source, alice):
    store_files(source, [SimpleUploadedFile(f"{n}.md", f"# File {n}\n\nRule {n} is another.\n".encode()) for n in range(5)], user=alice)


@pytest.mark.parametrize("budget", [{"monthly_tokens": 5}, {"monthly_cost": 0.0005}])
def test_a_run_stops_at_the_ceiling_and_a_raised_one_goes_on(actor, alice, knowledge_base, source, server, files, budget):
    set_budget(actor, knowledge_base, **budget)
    run = go(source, alice)
    assert (run.status, run.stop_reason) == ("partial", "budget_exhausted")
    assert (run.counters["ingested"], run.counters["failed"]) == (2, {"budget_exhausted": 3})  # the batch that reached it is kept
    assert Chunk.objects.values("document").distinct().count() == 2
    error = RunItem.objects.filter(run=run, verdict="failed").first().error
    assert "has spent its budget of this month" in error
    assert next(iter(budget)) in error
    assert not Document.objects.filter(source=source, chunk_count=0, last_error="").exists()
    paid = list(server.paid_texts())
    assert len(paid) == 2

    again = go(source, alice)
    assert (again.status, again.stop_reason, again.counters["unchanged"]) == ("partial", "budget_exhausted", 2)
    assert server.paid_texts() == paid

    set_budget(actor, knowledge_base)
    last = go(source, alice)
    assert (last.status, last.stop_reason, last.counters["ingested"]) == ("succeeded", "completed", 3)
    assert len(server.paid_texts()) == len(set(server.paid_texts())) == 5
    spent = usage.spending(knowledge_base.id)
    assert spent.tokens == sum(len(text.split()) for text in server.paid_texts())
    assert spent.cost == Decimal(spent.tokens) * 100 / 1_000_000


def test_the_next_month_has_a_budget_of_its_own(actor, alice, knowledge_base, source, server, files):
    set_budget(actor, knowledge_base, monthly_tokens=5)
    assert go(source, alice).stop_reason == "budget_exhausted"
    Usage.objects.update(month=date(2020, 1, 1))
    assert go(source, alice).counters["ingested"] == 2


def test_a_budget_of_nothing_asks_nobody(actor, alice, knowledge_base, source, server, files):
    set_budget(actor, knowledge_base, monthly_tokens=0)
    run = go(source, alice)
    assert (run.status, run.stop_reason, run.counters["requests"]) == ("partial", "budget_exhausted", 0)
    assert server.asked == []
    assert not Chunk.objects.exists()


def test_what_was_paid_for_once_is_published_beyond_the_ceiling(actor, alice, knowledge_base, source, server, files):
    """Vectors of the cache cost nothing."""
    go(source, alice)
    Document.objects.filter(source=source).update(content_hash=None)
    set_budget(actor, knowledge_base, monthly_tokens=0)
    run = go(source, alice)
    assert (run.status, run.stop_reason) == ("succeeded", "completed")
    assert len(server.paid_texts()) == 5
