"""What an explanation says, as the API and traces hold it. Pure."""

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from retrieval.hits import Scores

Verdict = Literal[
    "hit",
    "joined",
    "duplicate",
    "below_min_score",
    "excluded",
    "without_phrase",
    "not_current",
    "reranking",
    "max_per_document",
    "max_results",
    "outranked",
    "absent",
    "other_knowledge_base",
    "removed",
    "not_published",
    "filtered",
    "not_found",
]


class ExplainedSide(BaseModel):
    """One statement for candidates: which knowledge bases it asked, by what, and by which plan."""

    side: Literal["vectors", "words"]
    knowledge_bases: list[UUID]
    mode: str
    embedding_model: str | None = Field(description="Of vectors.")
    plan: str = Field(
        description="Vectors: `exact`, `hnsw`, or `hnsw, then exact` where the index was short. Words: `exact`, `narrowed` to chunks "
        "with the rarest terms, or `narrowed, then exact`. Other stores have plans of their own."
    )
    in_scope: int | None = Field(
        description="Chunks that the knowledge bases and filters leave; null where a store of its own holds the vectors."
    )
    exact_up_to: int | None = Field(description="Up to so many chunks in scope the plan is exact.")
    ef_search: int | None = Field(description="Candidates that HNSW kept while it looked, where it was asked.")
    depth: int = Field(description="Most candidates asked for.")
    found: int
    milliseconds: float


class ExplainedTerm(BaseModel):
    """A term of the question, after stemming and folding, and how rare it is in the knowledge bases that words were asked of."""

    term: str
    weight: float
    frequency: int = Field(description="Chunks that hold it.")
    idf: float


class ExplainedFusion(BaseModel):
    """fused = (vector_part + keyword_weight · keyword_part) / (1 + keyword_weight)"""

    vector_part: float = Field(description="(cosine - floor) / (1 - floor), between 0 and 1; the lowest cosine of the list without one.")
    keyword_part: float = Field(description="BM25 as a share of the best of this question.")
    keyword_weight: float = Field(description="1 or more where the question names an identifier or quotes a phrase.")
    floor: float
    arithmetic: str = Field(description="The same with its numbers.")


class ExplainedThreshold(BaseModel):
    """Which score is compared with which lowest score."""

    score: Literal["vector", "keyword"]
    value: float
    least: float
    reached: bool


class ExplainedCondition(BaseModel):
    """One condition of the filters, and whether it holds for the document. Whether the whole holds, `and`, `or` and `not` decide."""

    path: str
    type: str
    key: str
    value: Any
    holds: bool


class ExplainedPassage(BaseModel):
    """A candidate, and why it is a hit or not."""

    citation: str
    document_id: UUID
    title: str
    knowledge_base_id: UUID
    place: int | None = Field(description="Among the candidates of all sides, by the score that ranks before reranking.")
    scores: Scores
    fusion: ExplainedFusion | None = Field(description="In hybrid mode.")
    threshold: ExplainedThreshold
    matched_terms: list[str] = Field(description="Terms of the question that the passage holds.")
    conditions: list[ExplainedCondition]
    verdict: Verdict
    why: str


class ExplainedDocument(BaseModel):
    """Where a document stands that was asked about: its best passage, or what keeps all of them out."""

    document_id: UUID
    title: str | None = Field(description="Null where you cannot see the document.")
    verdict: Verdict
    why: str
    hits: list[int] = Field(description="Its places among the hits.")
    best: ExplainedPassage | None
    conditions: list[ExplainedCondition]


class Dropped(BaseModel):
    """Candidates that did not pass, by reason."""

    below_min_score: int = 0
    not_current: int = 0
    excluded: int = 0
    without_phrase: int = 0


class Explanation(BaseModel):
    """How an answer came about."""

    plans: list[str] = []
    sides: list[ExplainedSide] = []
    candidates: int = 0
    dropped: Dropped = Dropped()
    terms: list[ExplainedTerm] = []
    phrases: list[str] = []
    excluded: list[str] = []
    identifiers: list[str] = []
    embedding_models: list[str] = []
    reranking: list[dict[str, Any]] = Field([], description="What was asked of which reranker.")
    hits: list[ExplainedPassage] = Field([], description="In the order of the hits.")
    dropped_candidates: list[ExplainedPassage] = Field([], description="Of the first candidates those that are no hits, best first.")
    documents: list[ExplainedDocument] = Field([], description="What `explain_documents` asked about.")
