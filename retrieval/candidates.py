"""Both sides of a search and their fusion: chunk ids with scores, best first, before anybody has read a text."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from time import perf_counter
from uuid import UUID

from kb.models import Document, EmbeddingSpace
from kb.stores.contents import Contents
from kb.stores.words import search_words
from kb.words.query import WordQuery
from retrieval.encoding import EncodingFailed, QueryVectors
from retrieval.explanation import ExplainedSide
from retrieval.fusion import EXACT, Weights, for_query, fuse
from retrieval.hits import Scores
from retrieval.query import Query, Target
from retrieval.regions import Region
from retrieval.sides import vector_side, word_side

# A quoted word in a pasted page is no operator, and a name in it is not what the page is about.
MOST_TERMS_WITH_OPERATORS = 24


@dataclass(frozen=True, slots=True)
class Candidate:
    chunk: int
    mode: str
    score: float
    scores: Scores


@dataclass(frozen=True, slots=True)
class Shelf:
    """Knowledge bases of one mode that hold something and weigh words alike, with the spaces that their vectors live in."""

    mode: str
    weights: Weights
    targets: tuple[Target, ...]
    spaces: tuple[EmbeddingSpace, ...]
    contents: dict[UUID, Contents]

    @property
    def ids(self) -> list[UUID]:
        return [target.id for target in self.targets]

    @property
    def is_external(self) -> bool:
        """Whether a store over a network is asked."""
        return any(space.pk in self.contents[target.id].stores for target in self.targets for space in self.spaces)

    @property
    def ef_search(self) -> int | None:
        """The most that any of them asks for."""
        return max((target.ef_search for target in self.targets if target.ef_search), default=None)

    def size_in(self, knowledge_bases: Sequence[UUID]) -> int:
        return sum(self.contents[kb].chunks for kb in knowledge_bases)

    def ids_in(self, space: EmbeddingSpace) -> list[UUID]:
        return [target.id for target in self.targets if space.pk in self.contents[target.id].spaces]

    def regions(self, organization: UUID) -> list[Region]:
        """Space by space: its knowledge bases in this database, and those in each external store."""
        found = []
        for space in self.spaces:
            by_store: dict[str, Region] = {}
            for target in self.targets:
                contents = self.contents[target.id]
                if space.pk in contents.spaces:
                    store = contents.stores.get(space.pk)
                    region = by_store.setdefault(repr(store), Region(organization, space, [], store))
                    region.knowledge_bases.append(target.id)
            found += by_store.values()
        return found


@dataclass(frozen=True, slots=True)
class Fusion:
    """What a fused list was measured by: the best raw score of the words (0: none), the lowest cosine (None: no vectors)."""

    weights: Weights
    best: float
    lowest: float | None


@dataclass(slots=True)
class Findings:
    """Candidates of all modes in one list. `exhausted`: looking deeper would bring nothing that could pass. `sides` and `fusions` (by
    knowledge base) only for an explanation."""

    candidates: list[Candidate] = field(default_factory=list)
    exhausted: bool = True
    timings: dict[str, float] = field(default_factory=dict)
    plans: list[str] = field(default_factory=list)
    sides: list[ExplainedSide] = field(default_factory=list)
    fusions: dict[UUID, Fusion] = field(default_factory=dict)
    encoding_error: str = ""
    # A store could not be told the filter: whoever reads the rows applies it.
    is_unfiltered: bool = False

    def clock(self, name: str, since: float) -> float:
        spent = (perf_counter() - since) * 1000
        self.timings[name] = self.timings.get(name, 0.0) + spent
        return spent


def has_operators(words: WordQuery) -> bool:
    """Whether what it names to the letter is what it asks for."""
    return words.names_something and len(words.terms) <= MOST_TERMS_WITH_OPERATORS


def shelve(query: Query, contents: dict[UUID, Contents]) -> list[Shelf]:
    """The knowledge bases that hold something, by mode and weights: those of one shelf are fused as one list, and the lists of different
    ones only merged."""
    filled = sorted((target for target in query.targets if target.id in contents), key=_shelf_of)
    wanted = {space for target in filled if target.mode != "keyword" for space in contents[target.id].spaces}
    spaces = {target.space.pk: target.space for target in filled if target.space is not None}
    if others := wanted - spaces.keys():
        spaces |= {space.pk: space for space in EmbeddingSpace.objects.select_related("embedding_model").filter(pk__in=others)}
    shelves = []
    for (mode, keyword, floor), group in groupby(filled, key=_shelf_of):
        targets = tuple(group)
        used = sorted({space for target in targets for space in contents[target.id].spaces}) if mode != "keyword" else []
        shelves.append(Shelf(mode, Weights(keyword, floor), targets, tuple(spaces[space] for space in used if space in spaces), contents))
    return shelves


def _shelf_of(target: Target) -> tuple[str, float, float]:
    return target.mode, target.weights.keyword, target.weights.floor


def find_candidates(query: Query, shelves: Sequence[Shelf], words: WordQuery, vectors: QueryVectors, *, depth: int) -> Findings:
    """The `depth` best of each side of each shelf. `EncodingFailed` where a vector is all that was asked for."""
    findings = Findings()
    for shelf in shelves:
        _search_shelf(query, shelf, words, vectors, depth, findings)
    findings.candidates.sort(key=lambda candidate: (-candidate.score, candidate.chunk))
    return findings


def _search_shelf(query: Query, shelf: Shelf, words: WordQuery, vectors: QueryVectors, depth: int, findings: Findings) -> None:
    documents = Document.objects.filter(query.filters) if query.filters is not None else None
    scope = {"organization": query.organization, "documents": documents}
    near: list[tuple[int, float]] = []
    said: list[tuple[int, float, float]] = []
    more_near = False
    if shelf.mode != "keyword":
        near, more_near = _search_vectors(query, shelf, vectors, depth, findings, scope)
    if shelf.mode != "vector":
        started = perf_counter()
        found = search_words(knowledge_bases=shelf.ids, query=words, limit=depth, **scope)
        spent = findings.clock("words", started)
        findings.plans.append(f"words: {found.plan}")
        said = found.rows
        if query.explain:
            asked = {"mode": shelf.mode, "bases": shelf.ids, "scope": scope, "depth": depth, "found": len(said), "spent": spent}
            findings.sides.append(word_side(found.plan, **asked))
    if shelf.mode == "hybrid" and near and said:
        started = perf_counter()
        near += _cosines_of(shelf, vectors, [row[0] for row in said], {row[0] for row in near}, query)
        findings.clock("vectors", started)
    weights = _weights_for(shelf, words, near, said)
    findings.candidates += _scored(shelf.mode, near, said, weights)
    if query.explain and shelf.mode == "hybrid":
        lowest = min((cosine for _, cosine in near), default=None)
        fusion = Fusion(weights, max((raw for _, raw, _ in said), default=0.0), lowest)
        findings.fusions |= dict.fromkeys(shelf.ids, fusion)
    least = min(target.min_score.keyword for target in shelf.targets)
    more_said = len(said) >= depth and said[-1][2] >= least
    if more_near or (more_said and (shelf.mode == "keyword" or words.names_something or not near)):
        findings.exhausted = False


def _search_vectors(
    query: Query, shelf: Shelf, vectors: QueryVectors, depth: int, findings: Findings, scope: dict
) -> tuple[list[tuple[int, float]], bool]:
    least = min(target.min_score.vector for target in shelf.targets)
    near: list[tuple[int, float]] = []
    more = False
    for region in shelf.regions(query.organization):
        try:
            vector = vectors.vector(region.space)
        except EncodingFailed as error:
            if shelf.mode == "vector":
                raise
            findings.encoding_error = str(error)
            continue
        started = perf_counter()
        found, narrowed = region.search(
            vector,
            limit=depth,
            documents=scope["documents"],
            ef_search=shelf.ef_search,
            size=shelf.size_in(region.knowledge_bases),
        )
        findings.is_unfiltered |= not narrowed
        spent = findings.clock("vectors", started)
        findings.plans.append(f"vectors: {found.plan}")
        if query.explain:
            bases = region.knowledge_bases
            asked = {"mode": shelf.mode, "bases": bases, "scope": scope, "depth": depth, "found": len(found.rows), "spent": spent}
            findings.sides.append(vector_side(region.space, found.plan, ef=shelf.ef_search, **asked))
        near += found.rows
        more |= len(found.rows) >= depth and found.rows[-1][1] >= least
    return near, more


def _cosines_of(shelf: Shelf, vectors: QueryVectors, chunks: list[int], known: set[int], query: Query) -> list[tuple[int, float]]:
    missing = [chunk for chunk in chunks if chunk not in known]
    found: list[tuple[int, float]] = []
    for region in shelf.regions(query.organization):
        try:
            vector = vectors.vector(region.space)
        except EncodingFailed:
            continue
        found += region.cosines(vector, missing).items()
    return found


def _weights_for(shelf: Shelf, words: WordQuery, near: Sequence[tuple[int, float]], said: Sequence[tuple[int, float, float]]) -> Weights:
    if has_operators(words):
        return replace(shelf.weights, keyword=max(EXACT.keyword, shelf.weights.keyword))
    return for_query(shelf.weights, (cosine for _, cosine in near), (raw for _, raw, _ in said))


def _scored(mode: str, near: list[tuple[int, float]], said: list[tuple[int, float, float]], weights: Weights) -> list[Candidate]:
    if mode == "vector":
        ranked = sorted(dict(near).items(), key=lambda row: (-row[1], row[0]))
        return [Candidate(chunk, mode, cosine, Scores(vector=cosine, vector_rank=rank)) for rank, (chunk, cosine) in enumerate(ranked, 1)]
    if mode == "keyword":
        return [
            Candidate(chunk, mode, share, Scores(keyword=share, keyword_raw=raw, keyword_rank=rank))
            for rank, (chunk, raw, share) in enumerate(said, 1)
        ]
    fused = fuse(near, [(chunk, share, raw) for chunk, raw, share in said], weights=weights)
    return [
        Candidate(
            hit.id,
            mode,
            hit.score,
            Scores(
                vector=hit.vector_score,
                keyword=hit.keyword_score,
                keyword_raw=hit.keyword_raw,
                fused=hit.score,
                vector_rank=hit.vector_rank,
                keyword_rank=hit.keyword_rank,
            ),
        )
        for hit in fused
    ]
