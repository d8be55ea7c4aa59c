"""What may be asked of judgements and evaluations, by REST, by a file or by a page of the admin."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from retrieval.requests import says_something

MAX_QUESTION = 10_000
MAX_QUOTE = 500
MAX_EXPECTED = 100

Grade = Annotated[int, Field(ge=1, le=3)]
Way = Literal["vector", "keyword", "hybrid", "own"]
WAYS: tuple[Way, ...] = ("vector", "keyword", "hybrid", "own")


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ExpectedInput(_Request):
    """One document, or one passage of it, that a good answer holds. Name it in one way; `name` may stand beside `document`."""

    document: str | None = Field(None, min_length=1, max_length=8192, description="Its id, its address or its key (file name).")
    citation: str | None = Field(None, max_length=40, description="A hit's: its document, and the beginning of its passage as the quote.")
    name: str | None = Field(None, min_length=1, max_length=8192, description="Its address or key, where it has another id: an export's.")
    grade: Grade = Field(1, description="1 helps, 2 answers in part, 3 answers.")
    quote: str = Field("", max_length=MAX_QUOTE, description="Words that the passage must hold; empty: any passage of the document.")

    @model_validator(mode="after")
    def _names_one(self) -> "ExpectedInput":
        if (self.document is None and self.name is None) == (self.citation is None):
            raise ValueError("name a document or a citation, and not both")
        return self


class JudgementInput(_Request):
    """A question and what should be found for it."""

    question: Annotated[str, AfterValidator(says_something)] = Field(min_length=1, max_length=MAX_QUESTION)
    expected: list[ExpectedInput] = Field(min_length=1, max_length=MAX_EXPECTED)
    note: str = Field("", max_length=2000)


class JudgementFile(_Request):
    """All judgements of a file."""

    judgements: list[JudgementInput] = Field(max_length=100_000)


class HitsInput(_Request):
    """Hits of a search that should be found for its question."""

    trace_id: str = Field(max_length=40)
    citations: list[str] = Field(min_length=1, max_length=MAX_EXPECTED)
    grade: Grade = 1


class EvaluationInput(_Request):
    """How to evaluate: each of `ways` asks every question once."""

    ways: Annotated[list[Way], Field(min_length=1, max_length=len(WAYS))] = Field(
        list(WAYS), description="A mode with everything else left out, or `own`: the knowledge base's settings, reranker included."
    )
    k: int = Field(10, ge=1, le=50, description="How many places of the list count.")
    comment: str = Field("", max_length=300, description="What is tried; shown beside the figures.")
