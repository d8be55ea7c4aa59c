"""What a search of the knowledge base does unless the request says otherwise."""

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from kb.schemas.base import Document, Name, rules_of

Mode = Literal["vector", "keyword", "hybrid"]


def _or_a_number(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"type": "number", "minimum": 0, "maximum": 1}]


class MinScore(Document):
    """Hits below these scores are not returned. Hybrid uses `vector`."""

    vector: float = Field(default=0.3, ge=0, le=1, description="Cosine similarity.")
    keyword: float = Field(default=0.0, ge=0, le=1, description="BM25 as a share of the most that the query's terms could score.")
    reranked: float = Field(default=0.0, ge=0, le=1, description="The reranker's probability.")


class Fusion(Document):
    """How hybrid mode puts vectors and words together."""

    keyword_weight: float = Field(
        default=0.3,
        ge=0,
        le=10,
        description="What the best match of words is worth against a cosine of 1. A query in which one side's best stands out more than "
        "the other's shifts it; 0 stays 0.",
    )
    vector_floor: float = Field(
        default=0.0,
        ge=-1,
        le=0.95,
        description="The cosine of texts that have nothing to do with each other: 0 for MiniLM, 0.7 for e5 models.",
    )


class RetrievalSettings(Document):
    """Retrieval defaults."""

    mode: Mode = Field(default="hybrid", description="Nearest vectors, words (BM25), or both fused into one list.")
    max_results: int = Field(default=5, ge=1, le=100, description="The most hits of one search.")
    min_score: MinScore = Field(
        default_factory=MinScore,
        description="Lowest score of a hit, 0–1 each: `{vector, keyword, reranked}`. A plain number sets the one of the mode (hybrid: "
        "`vector`).",
        json_schema_extra=_or_a_number,
    )
    ef_search: int | None = Field(
        default=None,
        ge=10,
        le=1000,
        description="Candidates that a vector index keeps while it looks: more find more of the nearest, and take longer. None: twice what "
        "is looked for, at least 100.",
    )
    neighbours: int = Field(default=1, ge=0, le=5, description="Chunks before and after a hit that are joined to it.")
    rerank: Name | None = Field(default=None, description="Name of a registered reranker; none leaves the fused order.")
    rerank_depth: int = Field(default=50, ge=1, le=200, description="Candidates that the reranker reads; at least as many as are returned.")
    diversity: float = Field(
        default=0.0, ge=0, le=1, description="How much a hit that repeats others is put back (maximal marginal relevance); 0 not at all."
    )
    max_per_document: int = Field(default=0, ge=0, le=100, description="The most hits of one document; 0 for no limit.")
    collapse_duplicates: bool = Field(
        default=True, description="Nearly the same text in several documents is one hit, which names the others in `also_in`."
    )
    fusion: Fusion = Field(default_factory=Fusion, description="How hybrid mode puts vectors and words together.")

    @field_validator("rerank")
    @classmethod
    def _available(cls, value: str | None, info: ValidationInfo) -> str | None:
        rules = rules_of(info)
        if value is not None and rules.strict and rules.known_rerankers is not None and value not in rules.known_rerankers:
            known = ", ".join(sorted(rules.known_rerankers)) or "none"
            raise ValueError(f"'{value[:100]}' is no reranker of this installation. Available: {known}.")
        return value

    @model_validator(mode="before")
    @classmethod
    def _plain_min_score(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        score = data.get("min_score")
        if isinstance(score, int | float) and not isinstance(score, bool):
            return {**data, "min_score": {"keyword" if data.get("mode") == "keyword" else "vector": score}}
        return data
