"""Words of chunks: BM25 as a dot product in Postgres, exact for small scopes and narrowed by the rarest terms above."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from kb.models.documents import Document
from kb.stores import wire
from kb.stores.copying import copy_rows
from kb.stores.scope import Scope
from kb.stores.statistics import bucket_for, fold_if_piled_up, read_corpus
from kb.words import bm25

EXACT_CHUNKS = 20_000
# How many chunks a narrowed search looks at, by our own frequencies: the planner knows nothing of a single term.
CANDIDATES = 20_000

EXACT = "exact"
NARROWED = "narrowed"
NARROWED_THEN_EXACT = "narrowed, then exact"

_COLUMNS = ("organization", "kb", "chunk", "length", "average", "terms", "impacts")


@dataclass(frozen=True, slots=True)
class WordRow:
    """Counts by term hash (`kb.words.hashing.hash_counts`), and the length as `kb.words.analysis` counts it."""

    chunk: int
    counts: Mapping[int, int]
    length: int


class WordQuery(Protocol):
    """What a search needs of a question (`kb.words.query` makes it): weights by term hash, and the terms of each language it was read in."""

    @property
    def terms(self) -> Mapping[int, float]: ...

    @property
    def variants(self) -> Sequence[Collection[int]]: ...


@dataclass(frozen=True, slots=True)
class WordMatches:
    """(chunk id, BM25, BM25 as a share of the most any chunk could have), best first. Chunks without any term of the query are no matches."""

    rows: list[tuple[int, float, float]]
    plan: str


def add_words(*, organization: UUID, knowledge_base: UUID, rows: Sequence[WordRow]) -> int:
    """Write the words of chunks that have none yet, one row for each, also when it has no words. Needs the caller's transaction."""
    if not rows:
        return 0
    average = bucket_for(organization=organization, knowledge_base=knowledge_base, lengths=[row.length for row in rows])
    encoded = (
        wire.word_row(
            organization=organization,
            knowledge_base=knowledge_base,
            chunk=row.chunk,
            length=row.length,
            average=average,
            impacts=bm25.impacts(row.counts, length=row.length, average_length=average),
        )
        for row in rows
    )
    copy_rows("lexical", _COLUMNS, encoded)
    fold_if_piled_up(knowledge_base)
    return len(rows)


def search_words(
    *,
    organization: UUID,
    knowledge_bases: Sequence[UUID],
    query: WordQuery,
    limit: int,
    documents: Sequence[UUID] | QuerySet[Document] | None = None,
    sources: Sequence[UUID] | None = None,
) -> WordMatches:
    """The best chunks by BM25, counted over all the knowledge bases as one. Fewer than `limit` come back only when no more match."""
    if not query.terms:
        return WordMatches([], EXACT)
    corpus = read_corpus(organization=organization, knowledge_bases=knowledge_bases, terms=query.terms)
    weights = bm25.query_weights(query.terms, frequencies=corpus.frequencies, documents=corpus.chunks)
    held = {term: weight for term, weight in weights.items() if weight > 0 and term in corpus.frequencies}
    if not held:
        return WordMatches([], EXACT)
    scope = Scope(organization, knowledge_bases, documents, sources)
    rows, plan = _search(scope, held, corpus.frequencies, chunks=corpus.chunks, limit=limit)
    top = bm25.ceiling(weights, query.variants)
    return WordMatches([(chunk, score, bm25.normalised(score, top)) for chunk, score in rows], plan)


def _search(
    scope: Scope, weights: Mapping[int, float], frequencies: Mapping[int, int], *, chunks: int, limit: int
) -> tuple[list[tuple[int, float]], str]:
    vector = bm25.to_sparsevec(weights)
    # A filter on documents has its own count, and a scan of what it leaves is the narrowing.
    if (scope.count() if scope.is_narrowed else chunks) <= EXACT_CHUNKS:
        return _scan(scope, vector, limit), EXACT
    chosen = rarest_terms(weights, frequencies, CANDIDATES)
    found = _scan_holders(scope, vector, chosen, limit)
    if len(found) < limit and len(chosen) < len(weights):
        return _scan(scope, vector, limit), NARROWED_THEN_EXACT
    return found, NARROWED


def rarest_terms(weights: Mapping[int, float], frequencies: Mapping[int, int], candidates: int) -> list[int]:
    """The rarest terms whose chunks are together no more than `candidates`, at least one. Pure."""
    chosen: list[int] = []
    total = 0
    for term in sorted(weights, key=lambda term: (frequencies.get(term, 0), term)):
        total += frequencies.get(term, 0)
        if chosen and total > candidates:
            break
        chosen.append(term)
    return chosen


_SCAN = """
SELECT chunk, -(impacts <#> %s::sparsevec) FROM lexical WHERE {condition}
ORDER BY impacts <#> %s::sparsevec, chunk LIMIT %s
"""


def _scan(scope: Scope, vector: str, limit: int) -> list[tuple[int, float]]:
    condition, parameters = scope.condition()
    with connection.cursor() as cursor:
        cursor.execute(_SCAN.format(condition=condition), [vector, *parameters, vector, limit])
        return _matching(cursor.fetchall())


def _scan_holders(scope: Scope, vector: str, terms: Sequence[int], limit: int) -> list[tuple[int, float]]:
    condition, parameters = scope.condition()
    statement = _SCAN.format(condition=f"{condition} AND terms && %s::int[]")
    with transaction.atomic(), connection.cursor() as cursor:
        # Only bitmaps are left: the planner would rather scan all and compare arrays, at several times the cost (measured).
        cursor.execute("SELECT set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true)")
        cursor.execute(statement, [vector, *parameters, list(terms), vector, limit])
        found = _matching(cursor.fetchall())
        cursor.execute("SELECT set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'on', true)")
    return found


def _matching(rows: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    return [(chunk, score) for chunk, score in rows if score > 0]
