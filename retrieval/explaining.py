"""Why an answer is what it is: plans, terms, the arithmetic of each hit, and what became of the candidates that are none.

Read after the search and only when it was asked for. What the asker may not see is not named: a candidate that cannot be read is left out.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kb.models import Chunk, Document
from kb.stores.held_terms import read_terms
from kb.stores.statistics import Corpus, read_corpus
from kb.words import bm25
from kb.words.hashing import hash_weights, term_hash
from kb.words.query import WordQuery
from retrieval.candidates import Candidate, Findings, Fusion, Shelf
from retrieval.conditions import NO_FILTERS, Holding, conditions_of
from retrieval.explanation import (
    ExplainedFusion,
    ExplainedPassage,
    ExplainedTerm,
    ExplainedThreshold,
    Verdict,
)
from retrieval.fusion import above
from retrieval.hits import Hit, citation_of
from retrieval.hydration import COLUMNS, Found, Sieve, compared_score, current_chunks, passes
from retrieval.query import Query

# Of the candidates, from the best: those whose fate is told.
EXAMINED = 50
_TERMS = 64

WHY: dict[str, str] = {
    "excluded": "It holds what the question excludes.",
    "without_phrase": "It does not hold the quoted phrase, and passages that do are better.",
    "not_current": "Its document was taken down while the search ran, or its source is being removed.",
    "filtered": "The filters leave its document out; its store could not be told them.",
    "reranking": "The reranker put it below its lowest score, or did not read so far down.",
    "max_per_document": "Its document gave all the hits that one document may.",
    "max_results": "Its knowledge base gave all the hits that it may.",
    "outranked": "It passed, but better ones filled the answer.",
}


@dataclass(frozen=True, slots=True)
class Course:
    """A search that is over: what it looked for, what came of it. `read` passed and was read, `ranked` is that after reranking."""

    query: Query
    shelves: Sequence[Shelf]
    words: WordQuery
    findings: Findings
    read: Sequence[Found]
    ranked: Sequence[Found]
    hits: Sequence[Hit]


@dataclass(slots=True)
class Examiner:
    """Tells what became of candidates of one search. `places` is where each chunk stands among them; `private`: what was told names a
    private document."""

    course: Course
    private: bool = False
    places: dict[int, int] = field(default_factory=dict)
    _standing: set[int] = field(default_factory=set)
    _terms: dict[int, set[int]] = field(default_factory=dict)
    _holdings: dict[UUID, Holding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = {candidate.chunk: place for place, candidate in enumerate(self.course.findings.candidates, start=1)}

    def hits(self) -> list[ExplainedPassage]:
        """In the order of the hits; one that was found by its neighbours has the scores of the best of them."""
        by_chunk = {found.row["id"]: found for found in [*self.course.read, *self.course.ranked]}
        found = [by_chunk[hit.chunk_id] for hit in self.course.hits]
        self.prepare(found)
        return [self.passage(one, "hit", self.why_passed(one)) for one in found]

    def dropped(self) -> list[ExplainedPassage]:
        """Of the first candidates those that are no hits, best first."""
        shown = {hit.chunk_id for hit in self.course.hits}
        first = [candidate for candidate in self.course.findings.candidates[:EXAMINED] if candidate.chunk not in shown]
        ranked = {found.row["id"]: found for found in self.course.ranked}  # with the reranker's scores
        found = [ranked.get(one.row["id"], one) for one in self.read(first)]
        self.prepare(found)
        return [self.passage(one, *self.verdict(one)) for one in found]

    def read(self, candidates: Iterable[Candidate]) -> list[Found]:
        """Candidates with their rows, as far as the asker may read those."""
        query = self.course.query
        chunks = {candidate.chunk: candidate for candidate in candidates}
        targets = {target.id: target for target in query.targets}
        rows = Chunk.objects.filter(
            query.readable_chunks, organization=query.organization, knowledge_base__in=list(targets), id__in=list(chunks)
        )
        read = {row["id"]: row for row in rows.values(*COLUMNS)}
        return [Found(one, read[chunk], targets[read[chunk]["knowledge_base_id"]]) for chunk, one in chunks.items() if chunk in read]

    def verdict(self, found: Found) -> tuple[Verdict, str]:
        """Why a candidate is no hit."""
        course, row = self.course, found.row
        chunk = row["id"]
        for place, hit in enumerate(course.hits, start=1):
            if hit.document.id == row["document_id"] and hit.span.start <= row["start"] and row["end"] <= hit.span.end:
                return "joined", f"It is part of hit {place}."
            if any(twin.citation == citation_of(chunk) for twin in hit.also_in):
                return "duplicate", f"It says nearly the same as hit {place}, which names its document."
        if chunk not in self._standing:
            return "not_current", WHY["not_current"]
        if not self._holdings.get(row["document_id"], NO_FILTERS).whole:
            return "filtered", WHY["filtered"]
        sieve = Sieve()
        if not passes(found, course.words, sieve):
            return self._failed(found, sieve)
        if any(one.row["id"] == chunk for one in course.read) and not any(one.row["id"] == chunk for one in course.ranked):
            return "reranking", WHY["reranking"]
        return self._crowded_out(found)

    def _failed(self, found: Found, sieve: Sieve) -> tuple[Verdict, str]:
        if sieve.excluded:
            return "excluded", WHY["excluded"]
        if sieve.without_phrase:
            return "without_phrase", WHY["without_phrase"]
        compared = threshold_of(found)
        return "below_min_score", f"Its {compared.score} score {compared.value:.3f} is below the lowest, {compared.least:g}."

    def _crowded_out(self, found: Found) -> tuple[Verdict, str]:
        target = found.target
        of_document = sum(hit.document.id == found.row["document_id"] for hit in self.course.hits)
        if target.max_per_document and of_document >= target.max_per_document:
            return "max_per_document", WHY["max_per_document"]
        if Counter(hit.document.knowledge_base_id for hit in self.course.hits)[target.id] >= target.max_results:
            return "max_results", WHY["max_results"]
        return "outranked", WHY["outranked"]

    def why_passed(self, found: Found) -> str:
        compared = threshold_of(found)
        if compared.reached:
            return f"Its {compared.score} score {compared.value:.3f} reaches the lowest, {compared.least:g}."
        return "It holds every identifier and quoted phrase of the question, so it need not be near in meaning."

    def prepare(self, found: Sequence[Found]) -> None:
        """What several passages are told with, a statement for each kind."""
        query = self.course.query
        chunks = [one.row["id"] for one in found]
        self._standing |= set(current_chunks(query).filter(id__in=chunks).values_list("id", flat=True))
        self._terms |= read_terms(organization=query.organization, knowledge_bases=[t.id for t in query.targets], chunks=chunks)
        documents = {one.row["document_id"] for one in found}
        asked = query.request.filters if query.request else None
        self._holdings |= conditions_of(asked, query.types, organization=query.organization, documents=documents - self._holdings.keys())

    def passage(self, found: Found, verdict: Verdict, why: str) -> ExplainedPassage:
        row = found.row
        self.private |= row["document__visibility"] == Document.Visibility.PRIVATE
        held = self._terms.get(row["id"], set())
        return ExplainedPassage(
            citation=citation_of(row["id"]),
            document_id=row["document_id"],
            title=row["document__title"] or row["document__key"].partition("\n")[0][:300],
            knowledge_base_id=row["knowledge_base_id"],
            place=self.places.get(row["id"]),
            scores=found.candidate.scores,
            fusion=self._fusion(found),
            threshold=threshold_of(found),
            matched_terms=[term for term in self.course.words.terms if term_hash(term) in held][:_TERMS],
            conditions=self._holdings.get(row["document_id"], NO_FILTERS).conditions,
            verdict=verdict,
            why=why,
        )

    def _fusion(self, found: Found) -> ExplainedFusion | None:
        basis = self.course.findings.fusions.get(found.target.id)
        fused = found.candidate.scores.fused
        return None if basis is None or fused is None or found.candidate.mode != "hybrid" else arithmetic(found.candidate, basis)


def arithmetic(candidate: Candidate, basis: Fusion) -> ExplainedFusion:
    """As `retrieval.fusion.fuse` computed it."""
    weights, scores = basis.weights, candidate.scores
    near = above(basis.lowest if scores.vector is None else scores.vector, weights.floor)
    said = (scores.keyword_raw or 0.0) / basis.best if basis.best else 0.0
    weight = weights.keyword
    if not basis.best:
        text = f"{near:.3f}: no passage holds a word of the question, so the vectors alone rank"
    elif basis.lowest is None:
        text = f"{said:.3f}: there are no vectors, so the words alone rank"
    else:
        text = f"({near:.3f} + {weight:.3g} × {said:.3f}) / {1 + weight:.3g} = {scores.fused:.3f}"
    return ExplainedFusion(vector_part=near, keyword_part=said, keyword_weight=weight, floor=weights.floor, arithmetic=text)


def threshold_of(found: Found) -> ExplainedThreshold:
    name, value, least = compared_score(found.candidate, found.target)
    return ExplainedThreshold(score=name, value=value, least=least, reached=value >= least)


def terms_of(query: Query, shelves: Sequence[Shelf], words: WordQuery) -> list[ExplainedTerm]:
    """The terms of the question with their frequencies in what words were asked of, the heaviest first."""
    asked = sorted({target.id for shelf in shelves if shelf.mode != "vector" for target in shelf.targets})
    hashed = hash_weights(words.terms)
    known = read_corpus(organization=query.organization, knowledge_bases=asked, terms=hashed) if asked and hashed else Corpus(0, {})
    told = []
    for term, weight in words.terms.items():
        frequency = known.frequencies.get(term_hash(term), 0)
        told.append(ExplainedTerm(term=term, weight=weight, frequency=frequency, idf=bm25.idf(frequency, known.chunks)))
    return sorted(told, key=lambda one: -one.weight * one.idf)[:_TERMS]
