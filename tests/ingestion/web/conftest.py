"""A web source over a site on loopback, and its runs worked in this process."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from ingestion.models import IngestionRun, RunItem
from ingestion.sources.web import crawl, settling
from ingestion.stages import extract, slices
from kb.models import Document, Source
from tests.ingestion.api.conftest import api_client, async_get
from tests.servers.site import Site, page, paragraphs

__all__ = ["async_get"]
ROUNDS = 40


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def web(actor, hashing_model, site, settings, monkeypatch) -> Callable[..., Source]:
    """`web(max_depth=2, settings={...})` publishes a knowledge base with one web source over the site."""
    from kb import services

    settings.ENV = settings.ENV.model_copy(update={"allowed_private_networks": site.allowed, "slice_seconds": 5.0})
    monkeypatch.setattr(crawl, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(settling, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(extract, "LINGER_SECONDS", 0.0)

    def publish(*, settings: dict[str, Any] | None = None, name: str = "Site", **values: Any) -> Source:
        entry = {"name": "web", "web": {"start_url": site.url("/"), "request_delay_ms": 0, **values}, "settings": settings or {}}
        knowledge_base = services.create_knowledge_base(actor, document={"name": name, "visibility": "organization", "sources": [entry]})
        return Source.objects.get(knowledge_base=knowledge_base, name="web")

    return publish


@pytest.fixture
def client(organization, alice):
    """An editor's client of the API."""
    return api_client(organization, alice, "editor")


def url_of(source: Source) -> str:
    return f"/api/v1/knowledge-bases/{source.knowledge_base_id}/sources/{source.id}"


def put(site: Site, path: str, *links: str, **options: Any) -> None:
    """A page of its own text, with links."""
    site.put(path, page(f"Page {path}", paragraphs(path), links=links, **options))


def advance(run: IngestionRun, *stages: str) -> IngestionRun:
    """Work the run to its end, or only the given stages once."""
    if stages:
        for stage in stages:
            slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
        return IngestionRun.objects.get(id=run.id)
    for _ in range(ROUNDS):
        for stage in ("crawl", "extract", "embed", "publish", "finish"):
            slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
        run = IngestionRun.objects.get(id=run.id)
        if not run.is_open:
            return run
    raise AssertionError(f"the run did not end: {list(RunItem.objects.filter(run=run).values('key', 'stage', 'error'))}")


def run_source(source: Source) -> IngestionRun:
    from ingestion.services.runs import start_run

    return advance(start_run(source))


def verdicts(run: IngestionRun, site: Site) -> dict[str, str]:
    """Path → verdict, with the reason where there is one."""
    rows = RunItem.objects.filter(run=run).values_list("key", "verdict", "reason")
    origin = site.url("").rstrip("/")
    return {(key.removeprefix(origin) or "/"): f"{verdict} {reason}".strip() for key, verdict, reason in rows}


def living(source: Source, site: Site) -> set[str]:
    """Paths of the documents that answer."""
    rows = Document.objects.filter(source=source, tombstoned_at=None, chunk_count__gt=0).values_list("key", flat=True)
    return {key.removeprefix(site.url("").rstrip("/")) or "/" for key in rows}
