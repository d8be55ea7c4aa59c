"""Words of chunks: BM25 as a dot product in Postgres, exact for small scopes and narrowed by the rarest terms above."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from kb.models.documents import Document
from kb.stores import wire
from kb.stores.copying import copy_rows
from kb.stores.planning import BY_ARRAY, BY_BITMAP, planner
from kb.stores.scope import Scope
from kb.stores.statistics import Corpus, bucket_for, fold_if_piled_up, read_corpus
from kb.words import bm25
from kb.words.hashing import hash_weights, term_hash
from kb.words.query import WordQuery

EXACT_CHUNKS = 20_000
# How many chunks a narrowed search looks at: a tenth, within these bounds. Measured at 50,000 chunks: 10,000 candidates give the same first
# 30 as all, 5,000 do not.
LEAST_CANDIDATES = 10_000
MOST_CANDIDATES = 20_000

EXACT = "exact"
NARROWED = "narrowed"
NARROWED_THEN_EXACT = "narrowed, then exact"

_COLUMNS = ("organization", "kb", "chunk", "length", "average", "terms", "impacts")


@dataclass(frozen=True, slots=True)
class WordRow:
    """Counts by term hash (`hash_counts` in kb.words.hashing), and the length as kb.words.analysis counts it."""

    chunk: int
    counts: Mapping[int, int]
    length: int


@dataclass(frozen=True, slots=True)
class WordMatches:
    """(chunk id, BM25, BM25 as a share of the most any chunk could have), best first, each with at least one term of the query."""

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
    """The best chunks by BM25, counted over all the knowledge bases as one. Fewer than `limit` come back only when no more match.

    Of the query's conditions only `excluded_terms` are applied: the others need the text.
    """
    terms = hash_weights(query.terms)
    corpus = read_corpus(organization=organization, knowledge_bases=knowledge_bases, terms=terms) if terms else Corpus(0, {})
    weights = bm25.query_weights(terms, frequencies=corpus.frequencies, documents=corpus.chunks)
    held = {term: weight for term, weight in weights.items() if weight > 0 and term in corpus.frequencies}
    if not held:
        return WordMatches([], EXACT)
    scope = Scope(organization, knowledge_bases, documents, sources)
    # A filter on documents has its own count, and a scan of what it leaves is the narrowing.
    scope, in_scope = scope.settle() if scope.is_narrowed else (scope, corpus.chunks)
    scan = _Scan(
        scope,
        vector=bm25.to_sparsevec(held),
        excluded=[term_hash(term) for term in query.excluded_terms],
        limit=limit,
    )
    rows, plan = _search(scan, held, corpus, in_scope)
    top = bm25.ceiling(weights, [[term_hash(term) for term in variant] for variant in query.variants])
    return WordMatches([(chunk, score, bm25.normalised(score, top)) for chunk, score in rows], plan)


@dataclass(frozen=True, slots=True)
class _Scan:
    scope: Scope
    vector: str
    excluded: list[int]
    limit: int

    def run(self, holding: Sequence[int] = ()) -> list[tuple[int, float]]:
        """The best of all chunks in scope, or of those that hold one of some terms."""
        condition, parameters = self.scope.condition_of_scan()
        if holding:
            condition, parameters = f"{condition} AND terms && %s::int[]", [*parameters, list(holding)]
        if self.excluded:
            condition, parameters = f"{condition} AND NOT terms && %s::int[]", [*parameters, self.excluded]
        statement = (
            f"SELECT chunk, -(impacts <#> %s::sparsevec) FROM lexical WHERE {condition}"  # noqa: S608 - values are parameters
            " ORDER BY impacts <#> %s::sparsevec, chunk LIMIT %s"
        )
        settings = BY_ARRAY if self.scope.is_narrowed else BY_BITMAP if holding else {}
        with planner(settings) if settings else nullcontext(), connection.cursor() as cursor:
            cursor.execute(statement, [self.vector, *parameters, self.vector, self.limit])
            return [(chunk, score) for chunk, score in cursor.fetchall() if score > 0]


def _search(scan: _Scan, weights: Mapping[int, float], corpus: Corpus, in_scope: int) -> tuple[list[tuple[int, float]], str]:
    if in_scope <= EXACT_CHUNKS:
        return scan.run(), EXACT
    # By our own frequencies: the planner knows nothing of a single term.
    chosen = rarest_terms(weights, corpus.frequencies, min(max(LEAST_CANDIDATES, corpus.chunks // 10), MOST_CANDIDATES))
    found = scan.run(chosen)
    if len(found) < scan.limit and len(chosen) < len(weights):
        return scan.run(), NARROWED_THEN_EXACT
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
