"""Traces: written after every retrieval, also after one that failed, and read by those who can see all that was searched."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from config.errors import NotFound
from kb import access
from kb.access import Actor, Level
from kb.models import Organization
from retrieval.hits import Hit
from retrieval.models import RetrievalTrace
from retrieval.query import Query, Target

if TYPE_CHECKING:
    from retrieval.search import Outcome

# A pasted page need not be kept whole to tell what was asked.
QUERY_KEPT = 10_000


def write_trace(actor: Actor, query: Query, outcome: Outcome) -> UUID:
    """One insert, in a transaction of its own unless the caller has one.

    Nobody waits until it is on the disk: when Postgres crashes, the traces of the last second are lost, and nothing else.
    """
    trace = RetrievalTrace(
        organization=actor.organization,
        query=query.text[:QUERY_KEPT],
        mode=query.mode,
        knowledge_base_ids=[target.id for target in query.targets],
        versions={str(target.id): target.version for target in query.targets},
        settings={
            "request": query.request.model_dump(mode="json", exclude={"query"}) if query.request else {},
            "knowledge_bases": [describe_target(target) for target in query.targets],
            "notes": outcome.notes,
            "explanation": outcome.explanation,
        },
        hits=[_describe_hit(hit) for hit in outcome.hits],
        reason=outcome.reason,
        degraded=outcome.degraded,
        error=outcome.error,
        timings_ms={name: round(spent, 2) for name, spent in outcome.timings.items()},
        requested_by=actor.user,
        requested_with=actor.api_key if actor.user is None else None,
        private=outcome.names_private
        or any(document.private for hit in outcome.hits for document in (hit.document, *(twin.document for twin in hit.also_in))),
    )
    _insert(trace)
    return trace.id


def _insert(trace: RetrievalTrace) -> None:
    if connection.in_atomic_block:
        trace.save(force_insert=True)
        return
    fields = trace._meta.concrete_fields
    columns = ", ".join(f'"{field.column}"' for field in fields)
    values = ", ".join(f"%s::{field.db_type(connection)}" for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {trace._meta.db_table} ({columns}) SELECT {values}"  # noqa: S608 - names are the model's, values are parameters
            " FROM (SELECT set_config('synchronous_commit', 'off', true)) AS not_waiting",
            [field.get_db_prep_save(field.pre_save(trace, add=True), connection) for field in fields],
        )


def describe_target(target: Target) -> dict[str, Any]:
    least = target.min_score
    return {
        "id": str(target.id),
        "name": target.name,
        "version": target.version,
        "mode": target.mode,
        "max_results": target.max_results,
        "min_score": {"vector": least.vector, "keyword": least.keyword, "reranked": least.reranked},
        "neighbours": target.neighbours,
        "rerank": target.rerank,
        "rerank_depth": target.rerank_depth,
        "diversity": target.diversity,
        "max_per_document": target.max_per_document,
        "collapse_duplicates": target.collapse_duplicates,
        "fusion": {"keyword_weight": target.weights.keyword, "vector_floor": target.weights.floor},
        "ef_search": target.ef_search,
    }


def visible_traces(actor: Actor) -> QuerySet[RetrievalTrace]:
    """Those of the organization whose knowledge bases the actor can all see; of one that searched none, or that found something private,
    its asker's own."""
    own = Q(requested_by=actor.user) if actor.user is not None else Q(requested_with=actor.api_key, requested_with__isnull=False)
    rows = access.own_rows(actor, RetrievalTrace).filter(Q(private=False) | own)
    if not actor.is_limited and (actor.level >= Level.ADMIN or actor.is_operator):
        return rows
    seen = list(access.knowledge_bases(actor).values_list("id", flat=True))
    whole = Q(knowledge_base_ids__contained_by=seen) & ~Q(knowledge_base_ids=[])
    if actor.user is not None and not actor.is_limited:
        whole |= Q(knowledge_base_ids=[], requested_by=actor.user)
    return rows.filter(whole)


def get_trace(actor: Actor, trace_id: str | UUID) -> RetrievalTrace:
    found = visible_traces(actor).filter(id=access.parse_id(trace_id)).first()
    if found is None:
        raise NotFound()
    return found


def collect_traces(limit: int = 5000) -> int:
    """Remove the traces of each organization that are older than LECTERN_TRACE_DAYS, so many at a time; returns how many went."""
    if not settings.ENV.trace_days:
        return 0
    until = timezone.now() - timedelta(days=settings.ENV.trace_days)
    gone = 0
    for organization in Organization.objects.values_list("id", flat=True):  # as the index goes
        old = RetrievalTrace.objects.filter(organization_id=organization, created_at__lt=until).order_by("created_at")
        gone += RetrievalTrace.objects.filter(id__in=list(old.values_list("id", flat=True)[:limit])).delete()[0]
    return gone


def _describe_hit(hit: Hit) -> dict[str, Any]:
    """Where it stands and why it ranks; not its text, which goes when its document goes."""
    scores = hit.scores
    return {
        "citation": hit.citation,
        "score": hit.score,
        "scores": {name: getattr(scores, name) for name in scores.__slots__},
        "document_id": str(hit.document.id),
        "knowledge_base_id": str(hit.document.knowledge_base_id),
        "title": hit.document.title,
        "heading_path": list(hit.heading_path),
        "page": hit.page,
        "span": {"start": hit.span.start, "end": hit.span.end},
        "also_in": [{"citation": twin.citation, "document_id": str(twin.document.id)} for twin in hit.also_in],
    }
