"""What may be asked, by REST, by a workflow step or by a benchmark: the same description for all."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from retrieval.filters import Filter

MAX_QUERY = 100_000
MAX_KNOWLEDGE_BASES = 100
MAX_VARIANTS = 6
MAX_EXPLAINED = 20

Mode = Literal["vector", "keyword", "hybrid"]
Score = Annotated[float, Field(ge=0, le=1)]


def says_something(text: str) -> str:
    """NUL, which no database stores, is a space: nothing typed is an error but to type nothing."""
    text = text.replace("\x00", " ")
    if not text.strip():
        raise ValueError("it is empty; write what you are looking for")
    return text


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class MinScores(_Request):
    """Lowest scores by name; those left out stay as each knowledge base sets them."""

    vector: Score | None = Field(None, description="Cosine similarity; hybrid mode uses it too.")
    keyword: Score | None = Field(None, description="BM25 as a share of the most that the query's terms could score.")
    reranked: Score | None = Field(None, description="The reranker's probability.")


class FusionWeights(_Request):
    """How hybrid mode puts vectors and words together; what is left out stays as each knowledge base sets it."""

    keyword_weight: float | None = Field(None, ge=0, le=10, description="What the best match of words is worth against a cosine of 1.")
    vector_floor: float | None = Field(None, ge=-1, le=0.95, description="The cosine of texts that have nothing to do with each other.")


class SearchSettings(_Request):
    """How to search. What is left out, each knowledge base decides by its own retrieval settings."""

    mode: Mode | None = Field(None, description="Nearest vectors, words (BM25), or both fused into one list.")
    max_results: int | None = Field(
        None, ge=1, le=100, description="The most hits. Left out: each knowledge base gives at most its own `max_results`."
    )
    min_score: Score | MinScores | None = Field(None, description="A plain number sets the one of the mode (hybrid: `vector`).")
    rerank: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Name of a registered reranker; null for none, also where a knowledge base names one.",
    )
    rerank_depth: int | None = Field(None, ge=1, le=200, description="Candidates that the reranker reads.")
    diversity: Score | None = Field(None, description="How much a hit that repeats others is put back; 0 not at all.")
    max_per_document: int | None = Field(None, ge=0, le=100, description="The most hits of one document; 0 for no limit.")
    collapse_duplicates: bool | None = Field(None, description="Nearly the same text in several documents is one hit.")
    fusion: FusionWeights | None = Field(None, description="How hybrid mode puts vectors and words together.")
    ef_search: int | None = Field(
        None, ge=10, le=1000, description="Candidates that a vector index keeps while it looks: more find more of the nearest."
    )
    neighbours: int | None = Field(None, ge=0, le=5, description="Chunks before and after a hit that are joined to it.")


class Question(_Request):
    """What is looked for, and where."""

    query: Annotated[str, AfterValidator(says_something)] = Field(
        min_length=1,
        max_length=MAX_QUERY,
        description='Plain text. In words, "a phrase" is asked to the letter, and -word or -"a phrase" keeps passages out.',
    )
    knowledge_bases: list[str] | None = Field(
        None, max_length=MAX_KNOWLEDGE_BASES, description="Ids. Left out: every knowledge base that you can see."
    )
    filters: Filter | None = Field(None, description="Conditions on documents: their fields and their metadata.")


class ContextBudget(_Request):
    """The hits as one text for a model to read: whole passages under their marks, the first that does not fit ends it."""

    max_chars: int = Field(20_000, ge=0, le=10_000_000, description="The most characters, headings and marks included; 0 for no limit.")
    max_tokens: int = Field(0, ge=0, le=10_000_000, description="The most tokens; 0 for no limit.")
    tokenizer: Literal["estimate", "cl100k_base", "o200k_base", "all-MiniLM-L6-v2"] = Field(
        "estimate",
        description="What counts tokens, where it is installed; the estimate is four characters each, one in scripts without spaces.",
    )


class SearchRequest(Question, SearchSettings):
    """One search."""

    context: ContextBudget | None = Field(None, description="Also give the hits as one text, within these limits.")
    explain: bool = Field(
        False, description="Say how the answer came about: plans, terms, the arithmetic of each hit, and why other candidates are none."
    )
    explain_documents: list[str] = Field(
        [], max_length=MAX_EXPLAINED, description="Ids of documents that you expected: where each stands, or what keeps it out."
    )


class Variant(SearchSettings):
    """One way of asking, with a name of the caller's."""

    label: str = Field("", max_length=100)


class CompareRequest(Question):
    """One question under several settings."""

    variants: list[Variant] = Field(min_length=1, max_length=MAX_VARIANTS)

    def request_for(self, variant: Variant) -> SearchRequest:
        return SearchRequest(
            query=self.query,
            knowledge_bases=self.knowledge_bases,
            filters=self.filters,
            explain=True,
            # Only what the variant says: a reranker that is left out is the knowledge base's, and null is none.
            **{name: getattr(variant, name) for name in variant.model_fields_set if name in SearchSettings.model_fields},
        )
