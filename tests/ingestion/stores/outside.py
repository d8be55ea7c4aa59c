"""Texts into a knowledge base whose vectors lie outside, questions to it, and a look at what the server holds."""

from typing import Any
from uuid import uuid4

from ingestion.models import IngestionRun
from ingestion.services.pushes import ingest_text
from ingestion.stages import slices
from kb.models import KnowledgeBase
from retrieval.requests import SearchRequest
from retrieval.search import Answer, search

KEY = "sesame-open-wide"


def work(run: IngestionRun, *stages: str) -> IngestionRun:
    for stage in stages or ("extract", "embed", "publish", "finish"):
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


def put(knowledge_base: KnowledgeBase, text: str, name: str = "leave") -> IngestionRun:
    """A text under a name, in the place of the one before."""
    return work(ingest_text(knowledge_base, text=text, document_name=name, replace=True))


def ask(actor: Any, knowledge_base: KnowledgeBase, text: str, **values: Any) -> Answer:
    return search(actor, SearchRequest(query=text, knowledge_bases=[str(knowledge_base.id)], **values))


def points_of(server: Any, knowledge_base: KnowledgeBase) -> set[int]:
    """Ids of its points as they stand in the server."""
    found = set()
    for collection in server.client.get_collections().collections:
        points, _ = server.client.scroll(collection.name, limit=10_000, with_payload=True)
        found |= {point.id for point in points if point.payload["knowledge_base"] == str(knowledge_base.id)}
    return found
