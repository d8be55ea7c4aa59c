"""Words of chunks: BM25 as a dot product in Postgres, exact for small scopes and narrowed by the rarest terms above."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from django.db.models import QuerySet

from kb.models.documents import Document
from kb.stores import wire
from kb.stores.copying import copy_rows
from kb.stores.planning import BY_ARRAY, BY_BITMAP, fetch_all
from kb.stores.scope import Scope
from kb.stores.spellings import add_written, terms_beginning, terms_of_parts
from kb.stores.statistics import Corpus, bucket_for, fold_if_piled_up, read_corpus
from kb.words import bm25, compounds
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
    """Counts by term hash (`hash_counts` in kb.words.hashing), and the length as kb.words.analysis counts it. `written`: the words as they
    stand there, each with its term's hash, for questions that name a beginning."""

    chunk: int
    counts: Mapping[int, int]
    length: int
    written: frozenset[tuple[str, int]] = frozenset()


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
    add_written(organization=organization, knowledge_base=knowledge_base, words=chain.from_iterable(row.written for row in rows))
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
    asked = _read_asked(organization, knowledge_bases, query)
    corpus, weights = asked.corpus, asked.weights
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
    top = bm25.ceiling(weights, [[term_hash(term) for term in variant] for variant in query.variants]) + asked.more
    return WordMatches([(chunk, score, bm25.normalised(score, top)) for chunk, score in rows], plan)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the query weighs in this corpus. `more`: what the beginnings it names may add to the most that a chunk can score."""

    corpus: Corpus
    weights: dict[int, float]
    more: float = 0.0


def _read_asked(organization: UUID, knowledge_bases: Sequence[UUID], query: WordQuery) -> _Asked:
    terms = hash_weights(query.terms)
    place = {"organization": organization, "knowledge_bases": knowledge_bases}
    begun = [terms_beginning(**place, beginning=beginning) for beginning in query.prefixes]
    terms |= {term: 1.0 for found in begun for term in found if term not in terms}
    if query.compounds:
        terms = dict.fromkeys(terms_of_parts(**place, words=query.compounds), compounds.WEIGHT) | terms
    if not terms:
        return _Asked(Corpus(0, {}), {})
    corpus = read_corpus(**place, terms=terms)
    # All words of one beginning are one word: else the rarest of them, mostly a slip of the pen, would weigh most. So is a word that
    # several languages write differently.
    together: dict[int, float] = {}
    more = 0.0
    for found in [*([term_hash(term) for term in word] for word in query.alike), *begun]:
        together |= dict.fromkeys(found, min(sum(corpus.frequencies.get(term, 0) for term in found), corpus.chunks))
    for found in begun:
        more += bm25.idf(together.get(found[0], 0.0), corpus.chunks) * (bm25.K1 + 1.0) if found else 0.0
    weights = bm25.query_weights(terms, frequencies={**corpus.frequencies, **together}, documents=corpus.chunks)
    return _Asked(corpus, weights, more)


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
        rows = fetch_all(statement, [self.vector, *parameters, self.vector, self.limit], settings)
        return [(chunk, score) for chunk, score in rows if score > 0]


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
