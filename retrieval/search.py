"""One search, from the request to the answer. Whatever happens, a trace says what."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, transaction
from psycopg_pool import PoolTimeout

from config.errors import Unavailable
from kb.access import Actor
from kb.models import Document, Source
from kb.providers.tokens import token_counter_for
from kb.stores.base import StoreError
from kb.stores.contents import read_contents
from kb.words.query import WordQuery, parse_query
from retrieval import traces
from retrieval.candidates import Findings, Shelf, find_candidates, shelve
from retrieval.context import Context, build_context
from retrieval.encoding import EncodingFailed, QueryVectors
from retrieval.explaining import Course
from retrieval.hits import Hit
from retrieval.hydration import Found, Sieve, keep_current, read_passing
from retrieval.languages import languages_of
from retrieval.models import RERANK_ERROR, Reason
from retrieval.passages import make_hits
from retrieval.query import Query, Target, make_query
from retrieval.requests import ContextBudget, SearchRequest
from retrieval.reranking import rerank_pool
from retrieval.selection import Selection, diversify, select
from retrieval.whereabouts import explain

log = logging.getLogger(__name__)

LEAST_DEPTH = 64
MOST_DEPTH = 4096
# With conditions on the text each candidate is read; whoever holds all the words of a phrase ranks high among them anyway.
MOST_DEPTH_BY_TEXT = 1024
DEEPER = 4


class RetrievalFailed(Unavailable):
    """The store or the embedding model failed; `reason` and `trace_id` are members of the problem."""


@dataclass(slots=True)
class Outcome:
    """What a search came to, filled in as it goes, so that a failure leaves a trace of what was done until then."""

    hits: list[Hit] = field(default_factory=list)
    reason: str = ""
    degraded: str = ""
    error: str = ""
    notes: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    explanation: dict[str, Any] = field(default_factory=dict)
    ranked: list[Found] = field(default_factory=list)
    names_private: bool = False  # the explanation, beside the hits


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits, best first, or exactly one reason why there are none. `degraded` names what failed where hits came nevertheless."""

    trace_id: UUID
    hits: Sequence[Hit]
    reason: str | None
    degraded: str | None
    notes: Sequence[str]
    timings: Mapping[str, float]
    searched: Sequence[Target]
    explanation: Mapping[str, Any] | None = None
    context: Context | None = None


def search(actor: Actor, request: SearchRequest, *, vectors: QueryVectors | None = None) -> Answer:
    """Find passages in what the actor may see. Raises `NotFound` (a knowledge base), `InvalidInput` and `RetrievalFailed` (503).

    `vectors` keeps the question's vectors between searches for the same text.
    """
    query = make_query(actor, request)
    outcome, cause = find(query, vectors or QueryVectors(query.text, query.organization))
    trace_id = traces.write_trace(actor, query, outcome)
    if cause is not None:
        raise RetrievalFailed(_failure(outcome, cause), reason=str(outcome.reason), trace_id=str(trace_id)) from cause
    return Answer(
        trace_id=trace_id,
        hits=tuple(outcome.hits),
        reason=str(outcome.reason) or None,
        degraded=str(outcome.degraded) or None,
        notes=tuple(outcome.notes),
        timings=outcome.timings,
        searched=query.targets,
        explanation=outcome.explanation if query.explain else None,
        context=_context(outcome.hits, request.context),
    )


def _context(hits: Sequence[Hit], budget: ContextBudget | None) -> Context | None:
    if budget is None:
        return None
    count = token_counter_for(budget.tokenizer).count
    return build_context(hits, budget.max_chars, max_tokens=budget.max_tokens, count=count)


def find(query: Query, vectors: QueryVectors) -> tuple[Outcome, Exception | None]:
    """What a search comes to, without a trace; what went wrong beside it, if the store or the model failed."""
    started = perf_counter()
    outcome = Outcome()
    cause: Exception | None = None
    try:
        _run(query, outcome, vectors)
    except EncodingFailed as error:
        cause, outcome.reason, outcome.error = error, Reason.EMBEDDING_ERROR, str(error)
    except StoreError as error:
        cause, outcome.reason, outcome.error = error, Reason.STORE_ERROR, error.message[:2000]
    except (DatabaseError, InterfaceError, PoolTimeout) as error:
        log.warning("A search failed in the store.", exc_info=error)
        cause, outcome.reason, outcome.error = error, Reason.STORE_ERROR, f"{type(error).__name__}: {error}"[:2000]
    outcome.timings["total"] = (perf_counter() - started) * 1000
    return outcome, cause


def _failure(outcome: Outcome, cause: Exception) -> str:
    if outcome.reason == Reason.EMBEDDING_ERROR:
        return f"The question could not be embedded: {outcome.error} Search by keyword mode meanwhile, or try again."
    if isinstance(cause, StoreError):
        return f"{cause.message} The trace says what was asked."
    return "The store did not answer. Try again in a moment; the trace says what was asked."


def _run(query: Query, outcome: Outcome, vectors: QueryVectors) -> None:
    if not query.targets:
        outcome.reason = Reason.NO_MATCHING_KNOWLEDGE_BASE
        return
    contents = read_contents(organization=query.organization, knowledge_bases=[target.id for target in query.targets])
    shelves = shelve(query, contents)
    words = parse_query(query.text, languages_of(query.organization, contents))
    started = perf_counter()
    _encode(shelves, vectors)
    outcome.timings["embedding"] = (perf_counter() - started) * 1000
    # One transaction: a failed statement leaves nothing half open, also where a caller has one of its own. None over a network: a store
    # that takes its time would hold a connection, and with it other searches.
    with nullcontext() if any(shelf.is_external for shelf in shelves) else transaction.atomic():
        pool, findings, sieve = _look(query, shelves, words, vectors)
        if not pool and sieve.set_aside:
            pool = sieve.set_aside
            outcome.notes.append("No passage holds the quoted phrase; these are the nearest.")
        read = pool
        if not query.reranks:
            _finish(query, pool, shelves, findings, outcome)
    if query.reranks:
        # Outside of a transaction as well; what stands is looked at again afterwards.
        pool = _rerank(query, pool, words, sieve, outcome)
        with transaction.atomic():
            _finish(query, keep_current(query, pool), shelves, findings, outcome)
    outcome.timings |= findings.timings
    outcome.notes += vectors.notes
    if findings.encoding_error:
        _degrade(outcome, Reason.EMBEDDING_ERROR, findings.encoding_error)
        outcome.notes.append(f"The question could not be embedded, so the words alone were searched. {findings.encoding_error}")
    outcome.explanation = _explanation(findings, sieve, words, shelves) | outcome.explanation
    if query.explain:
        started = perf_counter()
        course = Course(query, shelves, words, findings, read, outcome.ranked, outcome.hits)
        told, outcome.names_private = explain(course, vectors)
        outcome.explanation |= told
        outcome.timings["explaining"] = (perf_counter() - started) * 1000
    if not outcome.hits:
        outcome.reason = _reason(query, shelves, sieve)


def _encode(shelves: Sequence[Shelf], vectors: QueryVectors) -> None:
    """Embed before the transaction: a model may take its time. What fails here fails again, from memory, where its mode is known."""
    for space in {space.pk: space for shelf in shelves for space in shelf.spaces}.values():
        payers = [target.id for shelf in shelves if space in shelf.spaces for target in shelf.targets]
        vectors.prepare(space, payers)


def _degrade(outcome: Outcome, code: str, error: str) -> None:
    """What failed first is named; everything that failed is told."""
    outcome.degraded = outcome.degraded or code
    outcome.error = " ".join(filter(None, [outcome.error, error]))


def _rerank(query: Query, pool: list[Found], words: WordQuery, sieve: Sieve, outcome: Outcome) -> list[Found]:
    started = perf_counter()
    reranked = rerank_pool(query, pool, words)
    outcome.timings["reranking"] = (perf_counter() - started) * 1000
    outcome.explanation["reranking"] = reranked.steps
    outcome.notes += reranked.notes
    sieve.below_min_score += reranked.below_min_score
    for failure in reranked.failures:
        _degrade(outcome, RERANK_ERROR, failure)
        outcome.notes.append(f"The hits were not reranked and stand as they were found. {failure}")
    return reranked.pool


def _finish(query: Query, pool: Sequence[Found], shelves: Sequence[Shelf], findings: Findings, outcome: Outcome) -> None:
    started = perf_counter()
    outcome.ranked = diversify(query, pool, shelves)
    outcome.hits = make_hits(query, select(query, outcome.ranked))
    findings.clock("hydration", started)


def _look(query: Query, shelves: Sequence[Shelf], words: WordQuery, vectors: QueryVectors) -> tuple[list[Found], Findings, Sieve]:
    """Passages that may answer, best first: as many as the pool takes and the answer needs, or all that exist."""
    filled = [target.id for shelf in shelves for target in shelf.targets]
    most = MOST_DEPTH_BY_TEXT if words.names_something or words.excluded else MOST_DEPTH
    depth = min(max(LEAST_DEPTH, DEEPER * query.limit, 2 * query.pool), most)
    timings: dict[str, float] = {}
    while True:
        findings = find_candidates(query, shelves, words, vectors, depth=depth)
        sieve = Sieve()
        started = perf_counter()
        filters = query.filters if findings.is_unfiltered else None
        pool, is_enough = _gather(query, read_passing(query, findings.candidates, words, sieve, filters=filters), filled)
        findings.clock("hydration", started)
        for name, spent in findings.timings.items():
            timings[name] = timings.get(name, 0.0) + spent
        findings.timings = timings
        if findings.exhausted or depth >= most or is_enough:
            return pool, findings, sieve
        depth = min(depth * DEEPER, most)


def _gather(query: Query, batches: Iterable[list[Found]], filled: Sequence[UUID]) -> tuple[list[Found], bool]:
    """What passes, as far as it is needed, and whether that is enough."""
    pool: list[Found] = []
    selection = Selection(query)
    for batch in batches:
        pool += batch
        selection.offer(batch)
        if len(pool) >= query.pool and selection.is_full(filled):
            return pool, True
    return pool, False


def _reason(query: Query, shelves: Sequence[Shelf], sieve: Sieve) -> Reason:
    ids = [target.id for target in query.targets]
    live = {"organization": query.organization, "knowledge_base__in": ids}
    documents = Document.objects.filter(query.readable, **live, tombstoned_at__isnull=True, source__state=Source.State.ACTIVE)
    if shelves and not (query.hides and not documents.filter(chunk_count__gt=0).exists()):
        # Only what stood a chance otherwise was too far off; the rest is as good as absent.
        return Reason.BELOW_MIN_SCORE if sieve.below_min_score else Reason.NO_HITS
    # A crawl makes its documents only when they are read: a site that is switched on counts as under way.
    sites = Source.objects.filter(**live, kind=Source.Kind.WEB, enabled=True, state=Source.State.ACTIVE)
    return Reason.NOTHING_INGESTED_YET if documents.exists() or sites.exists() else Reason.KNOWLEDGE_BASE_EMPTY


def _explanation(findings: Findings, sieve: Sieve, words: WordQuery, shelves: Sequence[Shelf]) -> dict[str, Any]:
    return {
        "plans": findings.plans,
        "candidates": len(findings.candidates),
        "dropped": {
            "below_min_score": sieve.below_min_score,
            "not_current": sieve.not_current,
            "excluded": sieve.excluded,
            "without_phrase": sieve.without_phrase,
        },
        "terms": sorted(words.terms, key=lambda term: -words.terms[term])[:64],
        "phrases": list(words.phrases),
        "excluded": list(words.excluded),
        "identifiers": list(words.identifiers),
        "embedding_models": sorted({space.embedding_model.name for shelf in shelves for space in shelf.spaces}),
    }
