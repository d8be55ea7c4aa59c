"""The measuring of a recall check: questions, draws of documents, the search beside the exact scan."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from uuid import UUID

import numpy as np

from kb.models import Document, EmbeddingSpace
from kb.stores.contents import NOTHING, read_contents
from kb.stores.sampling import sample_documents, sample_vectors, search_exactly
from kb.stores.vectors import MOST_EF_SEARCH, search_vectors
from retrieval.encoding import EncodingFailed, QueryVectors
from retrieval.models import RetrievalTrace
from retrieval.recall.figures import Probe, recall_at
from retrieval.search import LEAST_DEPTH

K = 10
# What a search of five hits asks each side for.
DEPTH = LEAST_DEPTH
# Of the documents of a level several draws: one would say more about itself than about its size.
DRAWS = 4
# Tried from below until the recall is reached.
EFS = (200, 400, 700, MOST_EF_SEARCH)
_TRACES_READ = 1000


@dataclass(frozen=True, slots=True)
class Ground:
    """What is searched: one knowledge base in one space, with what it holds there."""

    organization: UUID
    knowledge_base: UUID
    space: EmbeddingSpace
    documents: int
    chunks: int
    ef_search: int | None = None

    @property
    def place(self) -> dict[str, Any]:
        return {"organization": self.organization, "space": self.space, "knowledge_base": self.knowledge_base}


def survey(organization: UUID, knowledge_base: UUID, space: EmbeddingSpace, *, ef_search: int | None = None) -> Ground:
    """`ef_search` is what the knowledge base sets."""
    held = read_contents(organization=organization, knowledge_bases=[knowledge_base]).get(knowledge_base, NOTHING)
    rows = Document.objects.filter(organization=organization, knowledge_base=knowledge_base, space=space, chunk_count__gt=0)
    return Ground(organization, knowledge_base, space, rows.count(), held.chunks if space.pk in held.spaces else 0, ef_search)


def draw_questions(ground: Ground, count: int, *, seed: int) -> tuple[list[np.ndarray], str]:
    """Up to half of them what people asked lately, embedded anew, the rest stored vectors; and a note where embedding failed."""
    asked: list[np.ndarray] = []
    note = ""
    for text in _asked(ground, count // 2):
        try:
            asked.append(QueryVectors(text, ground.organization).vector(ground.space))
        except EncodingFailed as error:
            note = f"Questions that people asked were left out: {error}"
            break
    return asked + sample_vectors(**ground.place, count=count - len(asked), seed=seed), note


def _asked(ground: Ground, count: int) -> list[str]:
    """The latest distinct questions; those that found something private are their asker's own."""
    rows = RetrievalTrace.objects.filter(
        organization=ground.organization, knowledge_base_ids__contains=[ground.knowledge_base], private=False
    )
    recent = rows.order_by("-created_at").values_list("query", flat=True)[:_TRACES_READ]
    return list(dict.fromkeys(text for text in recent if text.strip()))[:count]


def draw_documents(ground: Ground, share: float, *, seed: int) -> list[list[UUID] | None]:
    """Several draws of a share of the documents, so that each question meets one of them; None where the share is everything."""
    if share >= 1:
        return [None]
    count = round(share * ground.documents)
    return [sample_documents(**ground.place, count=count, seed=seed + number) for number in range(DRAWS)]


def probe(ground: Ground, vector: np.ndarray, documents: Sequence[UUID] | None, *, ef: int | None = None) -> Probe:
    """One question by the plan that a search chooses, with the knowledge base's `ef_search` or another, and exactly."""
    started = perf_counter()
    found = search_vectors(
        organization=ground.organization,
        space=ground.space,
        knowledge_bases=[ground.knowledge_base],
        query=vector,
        limit=DEPTH,
        documents=documents,
        ef_search=ef or ground.ef_search,
    )
    between = perf_counter()
    exact = search_exactly(**ground.place, query=vector, limit=DEPTH, documents=documents)
    ended = perf_counter()
    return Probe(
        recall=recall_at(found.rows, exact, K),
        missing=max(0, len(exact) - len(found.rows)),
        milliseconds=(between - started) * 1000,
        exact_milliseconds=(ended - between) * 1000,
        plan=found.plan,
    )


def suggest_ef(ground: Ground, vectors: Sequence[np.ndarray], draws: Sequence[list[UUID] | None], *, least: float) -> int | None:
    """The smallest of a few that reaches the recall on these questions; None if none does."""
    for ef in EFS:
        probes = [probe(ground, vector, draws[place % len(draws)], ef=ef) for place, vector in enumerate(vectors)]
        if sum(one.recall for one in probes) / len(probes) >= least:
            return ef
    return None
