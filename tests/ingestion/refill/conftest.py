"""A knowledge base with documents that answer, and two models: the one in use and another, whose space is provisioned."""

from collections.abc import Callable, Sequence
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from ingestion.models import IngestionRun
from ingestion.refill import refilling
from ingestion.services.files import store_files
from ingestion.services.runs import start_run
from ingestion.stages import slices
from kb import versioning
from kb.models import KnowledgeBase, SpaceChange
from kb.stores.coverage import Holding
from retrieval.requests import SearchRequest
from retrieval.search import search

STAGES = ("crawl", "extract", "embed", "publish", "finish")


def work_run(run: IngestionRun, stages: Sequence[str] = STAGES) -> IngestionRun:
    for _ in range(3):
        for stage in stages:
            slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
        run = IngestionRun.objects.get(id=run.id)
        if stages != STAGES or not run.is_open:
            break
    return run


def refill(change: SpaceChange) -> SpaceChange:
    """Slices of the change until it has ended or waits; on a busy machine one may not be enough."""
    for _ in range(20):
        refilling.work(change.id, f"{change.id}:{uuid4().hex}")
        change = SpaceChange.objects.get(id=change.id)
        if not change.is_open or change.not_before or change.lease_token:
            break
    return change


@pytest.fixture
def other(make_space, second_partition):
    return make_space("other", provider="hashing", dimension=384, pk=second_partition)


@pytest.fixture
def add_files(source, alice) -> Callable[..., IngestionRun]:
    """Upload files and run the source to its end."""

    def add(**texts: str) -> IngestionRun:
        store_files(source, [SimpleUploadedFile(f"{name}.md", text.encode()) for name, text in texts.items()], user=alice)
        run = work_run(start_run(source, user=alice))
        assert run.status == "succeeded", run.error
        return run

    return add


@pytest.fixture
def filled(knowledge_base, add_files) -> KnowledgeBase:
    """Three documents of one chunk each."""
    add_files(
        leave="# Leave\n\nThirty days of leave a year.", boiler="# Boiler\n\nThe boiler is in the cellar.", cat="# Cat\n\nThe cat sleeps."
    )
    return KnowledgeBase.objects.get(id=knowledge_base.id)


@pytest.fixture
def name_model(actor) -> Callable[..., KnowledgeBase]:
    """Publish a version that names another model, and with it other values of the document."""

    def publish(knowledge_base: KnowledgeBase, model: str, **values: object) -> KnowledgeBase:
        current = versioning.read(knowledge_base)
        document = {**current.document, "embedding_model": model, **values}
        versioning.publish(knowledge_base, document=document, expected=current.number, actor=actor)
        return KnowledgeBase.objects.get(id=knowledge_base.id)

    return publish


@pytest.fixture
def ask(actor) -> Callable[..., tuple[list[str], list[str]]]:
    """(texts, names of the models that were asked) of a search by meaning alone."""

    def look(knowledge_base: KnowledgeBase, query: str) -> tuple[list[str], list[str]]:
        request = SearchRequest(
            query=query, knowledge_bases=[str(knowledge_base.id)], mode="vector", min_score=0.0, neighbours=0, explain=True
        )
        answer = search(actor, request)
        return [hit.text for hit in answer.hits], answer.explanation["embedding_models"]

    return look


def vectors_in(knowledge_base: KnowledgeBase, space) -> int:
    return Holding(knowledge_base.organization_id, knowledge_base.pk, space).count()
