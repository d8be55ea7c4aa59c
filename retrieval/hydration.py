"""From chunk ids to passages: rows of documents that still stand, the conditions that need the text, and one list within all limits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from django.db.models import Q, QuerySet

from kb.models import Chunk, Document, Source
from kb.words.query import Wording, WordQuery
from retrieval.candidates import Candidate, has_operators
from retrieval.query import Query, Target

# Rows read at once, at least: mostly one statement is enough.
LEAST_BATCH = 20
COLUMNS = (
    "id", "knowledge_base_id", "document_id", "ordinal", "start", "end", "text", "heading_path", "page_start", "page_end", "table_header",
    "document__title", "document__url", "document__source_id", "document__media_type", "document__language", "document__metadata",
    "document__markdown_id", "document__key", "document__visibility",
)  # fmt: skip
_STANDING = {"document__tombstoned_at__isnull": True, "document__source__state": Source.State.ACTIVE}


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate that passed, with its row. `twins` say nearly the same in other documents."""

    candidate: Candidate
    row: dict
    target: Target
    twins: list["Found"] = field(default_factory=list)


@dataclass(slots=True)
class Sieve:
    """Why candidates went: for the reason of an empty answer, and for whoever wants an explanation.

    `set_aside` is near enough but does not hold the quoted phrase: better than nothing where meaning counts too.
    """

    below_min_score: int = 0
    not_current: int = 0
    excluded: int = 0
    without_phrase: int = 0
    set_aside: list[Found] = field(default_factory=list)


def current_chunks(query: Query):
    """Chunks of documents that stand: not taken down, of a source that is not being removed, and nobody else's private ones."""
    return _of(query, Chunk.objects.filter(**_STANDING))


def _of(query: Query, rows: QuerySet) -> QuerySet:
    return rows.filter(query.readable_chunks, organization=query.organization, knowledge_base__in=[target.id for target in query.targets])


@cache
def _standing() -> QuerySet[Chunk, dict]:
    """Made once: to say all these columns anew takes Django longer than Postgres takes to read them."""
    return Chunk.objects.filter(**_STANDING).values(*COLUMNS)


def read_passing(
    query: Query, candidates: Sequence[Candidate], words: WordQuery, sieve: Sieve, *, filters: Q | None = None
) -> Iterator[list[Found]]:
    """The candidates that pass, best first, in the batches that they are read in. `filters` on documents, where they came without."""
    targets = {target.id: target for target in query.targets}
    promising = [candidate for candidate in candidates if _may_pass(candidate, query.targets, words)]
    sieve.below_min_score = len(candidates) - len(promising)
    size = max(LEAST_BATCH, 2 * query.limit, query.pool)
    for start in range(0, len(promising), size):
        batch = promising[start : start + size]
        rows = _read(query, [candidate.chunk for candidate in batch], filters)
        sieve.not_current += len(batch) - len(rows)
        read = ((candidate, rows[candidate.chunk]) for candidate in batch if candidate.chunk in rows)
        found = (Found(candidate, row, targets[row["knowledge_base_id"]]) for candidate, row in read)
        yield [hit for hit in found if passes(hit, words, sieve)]


def keep_current(query: Query, pool: Sequence[Found]) -> list[Found]:
    """Those whose chunks still stand: a reranker may have taken its time."""
    standing = set(current_chunks(query).filter(id__in=[hit.row["id"] for hit in pool]).values_list("id", flat=True))
    return [hit for hit in pool if hit.row["id"] in standing]


def _read(query: Query, chunks: Sequence[int], filters: Q | None) -> dict[int, dict]:
    rows = _of(query, _standing()).filter(id__in=chunks)
    if filters is not None:
        rows = rows.filter(document__in=Document.objects.filter(filters))
    return {row["id"]: row for row in rows}


def _may_pass(candidate: Candidate, targets: Sequence[Target], words: WordQuery) -> bool:
    """Before the text is read: whether any knowledge base would take it."""
    if candidate.mode == "hybrid" and words.names_something:
        return True
    return any(_reaches(candidate, target) for target in targets if target.mode == candidate.mode)


def compared_score(candidate: Candidate, target: Target) -> tuple[Literal["vector", "keyword"], float, float]:
    """Which score decides, what it is, and the lowest that its knowledge base takes."""
    scores, least = candidate.scores, target.min_score
    if candidate.mode == "keyword" or (candidate.mode == "hybrid" and scores.vector is None):
        # Without a vector (its model failed, or a knowledge base without one) the words decide.
        return "keyword", scores.keyword or 0.0, least.keyword
    return "vector", scores.vector or 0.0, least.vector


def _reaches(candidate: Candidate, target: Target) -> bool:
    _, value, least = compared_score(candidate, target)
    return value >= least


def passes(hit: Found, words: WordQuery, sieve: Sieve) -> bool:
    """Whether it may be a hit; why not is counted in the sieve."""
    row, by_word_only = hit.row, hit.candidate.mode == "keyword"
    reaches = _reaches(hit.candidate, hit.target)
    if not (words.phrases or words.excluded or (words.names_something and not reaches)):
        sieve.below_min_score += not reaches
        return reaches
    wording = Wording("\n".join([*row["heading_path"], row["text"]]))
    if wording.is_excluded(words):
        sieve.excluded += 1
        return False
    if words.phrases and has_operators(words) and not all(wording.holds(phrase) for phrase in words.phrases):
        sieve.without_phrase += 1
        if reaches and not by_word_only:
            sieve.set_aside.append(hit)
        return False
    if reaches or (hit.candidate.mode == "hybrid" and wording.names_all(words)):
        return True
    sieve.below_min_score += 1
    return False
