"""From chunk ids to passages: rows of documents that still stand, the conditions that need the text, and one list within all limits."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kb.models import Chunk, Source
from kb.words.query import Wording, WordQuery
from retrieval.candidates import Candidate, has_operators
from retrieval.query import Query, Target

# Rows read at once, at least: mostly one statement is enough.
LEAST_BATCH = 20
_COLUMNS = (
    "id", "knowledge_base_id", "document_id", "ordinal", "start", "end", "text", "heading_path", "page_start", "page_end", "table_header",
    "document__title", "document__url", "document__source_id", "document__media_type", "document__language", "document__metadata",
    "document__markdown_id", "document__key", "document__visibility",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate that passed, with its row."""

    candidate: Candidate
    row: dict
    target: Target


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
    return Chunk.objects.filter(
        query.readable_chunks,
        organization=query.organization,
        knowledge_base__in=[target.id for target in query.targets],
        document__tombstoned_at__isnull=True,
        document__source__state=Source.State.ACTIVE,
    )


def take_hits(query: Query, candidates: Sequence[Candidate], words: WordQuery, sieve: Sieve) -> list[Found]:
    """The best candidates that pass, until the answer is full or the list ends."""
    targets = {target.id: target for target in query.targets}
    taken: Counter[UUID] = Counter()
    found: list[Found] = []
    promising = [candidate for candidate in candidates if _may_pass(candidate, query.targets, words)]
    sieve.below_min_score = len(candidates) - len(promising)
    size = max(LEAST_BATCH, 2 * query.limit)
    for start in range(0, len(promising), size):
        batch = promising[start : start + size]
        rows = _read(query, [candidate.chunk for candidate in batch])
        for candidate in batch:
            row = rows.get(candidate.chunk)
            if row is None:
                sieve.not_current += 1
                continue
            hit = Found(candidate, row, targets[row["knowledge_base_id"]])
            if taken[hit.target.id] < hit.target.max_results and _passes(hit, words, sieve):
                taken[hit.target.id] += 1
                found.append(hit)
                if len(found) == query.limit:
                    return found
        if all(taken[target.id] >= target.max_results for target in query.targets):
            break
    return found


def take_set_aside(query: Query, sieve: Sieve) -> list[Found]:
    """The nearest without the quoted phrase, within the same limits."""
    taken: Counter[UUID] = Counter()
    found: list[Found] = []
    for hit in sieve.set_aside:
        if taken[hit.target.id] < hit.target.max_results:
            taken[hit.target.id] += 1
            found.append(hit)
    return found[: query.limit]


def is_full(query: Query, found: Sequence[Found], filled: Iterable[UUID]) -> bool:
    """Whether nothing more fits: the answer is full, or each knowledge base that holds something gave all that it may."""
    taken = Counter(hit.target.id for hit in found)
    most = {target.id: target.max_results for target in query.targets}
    return len(found) >= query.limit or all(taken[identifier] >= most[identifier] for identifier in filled)


def _read(query: Query, chunks: Sequence[int]) -> dict[int, dict]:
    rows = current_chunks(query).filter(id__in=chunks)
    return {row["id"]: row for row in rows.values(*_COLUMNS)}


def _may_pass(candidate: Candidate, targets: Sequence[Target], words: WordQuery) -> bool:
    """Before the text is read: whether any knowledge base would take it."""
    if candidate.mode == "hybrid" and words.names_something:
        return True
    return any(_reaches(candidate, target) for target in targets if target.mode == candidate.mode)


def _reaches(candidate: Candidate, target: Target) -> bool:
    scores, least = candidate.scores, target.min_score
    if candidate.mode == "keyword" or (candidate.mode == "hybrid" and scores.vector is None):
        # Without a vector (its model failed, or a knowledge base without one) the words decide.
        return (scores.keyword or 0.0) >= least.keyword
    return (scores.vector or 0.0) >= least.vector


def _passes(hit: Found, words: WordQuery, sieve: Sieve) -> bool:
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
