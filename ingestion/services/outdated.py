"""Documents that were cut under other settings than those of now. They answer until a run has cut each of them anew."""

from collections.abc import Iterator
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from config.registry import Registry
from ingestion.models import IngestionRun
from ingestion.plan import Plan, plan_for
from kb.embedding_status import Outdated
from kb.models import Document, KnowledgeBase, Source

PAGE = 500


def count(knowledge_base: KnowledgeBase) -> Outdated:
    """By source, because each has settings of its own; in a channel each file may have."""
    wrong = of = 0
    waiting = []
    for source in Source.objects.filter(knowledge_base=knowledge_base, state=Source.State.ACTIVE):
        documents = Document.objects.filter(source=source, tombstoned_at=None, chunk_count__gt=0)
        total = documents.count()
        if not total:
            continue
        run = IngestionRun(source=source, knowledge_base=knowledge_base, version=knowledge_base.current, space=knowledge_base.space)
        found = _in_channel(run, documents) if source.kind == Source.Kind.CHANNEL else documents.exclude(_cut_by(plan_for(run))).count()
        of += total
        wrong += found
        if found and source.enabled and source.kind in settings.CRAWLS:
            waiting.append(source.id)
    return Outdated(wrong, of, tuple(waiting))


def _cut_by(plan: Plan) -> Q:
    return Q(chunk_fingerprint=plan.fingerprints["chunk"], context_fingerprint=plan.fingerprints["context"])


def _in_channel(run: IngestionRun, documents: QuerySet[Document]) -> int:
    cut = {row[0]: row[1:] for row in documents.values_list("id", "chunk_fingerprint", "context_fingerprint")}
    wanted = {document_id: (plan.fingerprints["chunk"], plan.fingerprints["context"]) for document_id, plan in _plans(run)}
    return sum(tuple(found) != wanted.get(document_id, tuple(found)) for document_id, found in cut.items())


def _plans(run: IngestionRun) -> Iterator[tuple[UUID, Plan]]:
    lister = Registry("source", settings.SOURCE_LISTERS).load(run.source.kind)
    after: UUID | None = None
    while page := list(lister(run.source, after=after, limit=PAGE)):
        yield from ((entry.document.id, plan_for(run, entry.policy) if entry.policy else plan_for(run)) for entry in page)
        after = page[-1].document.id
