"""Bodies and answers of judgements, evaluations and recall checks, as OpenAPI shows them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from kb.models import KnowledgeBase
from retrieval.evaluation.judging import shown
from retrieval.evaluation.requests import EvaluationInput, HitsInput, JudgementFile, JudgementInput
from retrieval.models import EvaluatedQuestion, Evaluation, Job, Judgement


class _Shown(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class WantedJudgement(JudgementInput):
    """A question and what should be found for it."""


class WantedHits(HitsInput):
    """Hits of a search that should be found for its question."""


class WantedEvaluation(EvaluationInput):
    """How to evaluate; each way asks every question once."""


class ShownExpectation(_Shown):
    document_id: UUID
    grade: int
    quote: str
    title: str
    url: str
    state: Literal["there", "gone", "quote_gone"] = Field(
        description="`gone`: it answers nothing any more. `quote_gone`: no passage of it holds the words; told of one judgement only."
    )


class ShownJudgement(_Shown):
    """What is gone is not counted by evaluations, neither as found nor as missed."""

    id: UUID
    question: str
    expected: list[ShownExpectation]
    note: str
    author_name: str
    created_at: datetime
    updated_at: datetime


class ImportedJudgements(_Shown):
    created: int
    changed: int


class WantedJudgements(JudgementFile):
    """A file of judgements, as the export gives it."""


class ExportedExpectation(BaseModel):
    document: UUID
    name: str | None = Field(description="Its address or key, to find it by elsewhere; null of one that is gone.")
    grade: int
    quote: str


class ExportedJudgement(BaseModel):
    question: str
    note: str
    expected: list[ExportedExpectation]


class ExportedJudgements(BaseModel):
    judgements: list[ExportedJudgement]


class WayFigures(_Shown):
    """Means over the scored questions, null where there was none."""

    ndcg: float | None = Field(description="nDCG@k: grades as gains, log2(place + 1) as the discount.")
    recall: float | None = Field(description="Share of what should be found that is among the first k places.")
    mrr: float | None = Field(description="Mean of 1 / place of the first that should be found.")
    scored: int
    empty: int = Field(description="Questions that found nothing.")
    failed: int = Field(description="Questions whose search failed; they count in no mean.")
    stale: int = Field(description="Questions of which everything expected is gone; they count in no mean.")
    milliseconds: float | None = Field(description="Median time of a search.")
    error: str


class ShownJob(_Shown):
    id: UUID
    version: int = Field(description="The version of the knowledge base that was current at the start.")
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    settings: dict[str, Any]
    done: int
    total: int
    error: str | None
    requested_name: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ShownEvaluation(ShownJob):
    """An evaluation: its settings name `ways`, `k`, the knowledge base's own settings and its embedding model."""

    comment: str
    figures: dict[str, WayFigures] = Field(description="By way; empty until it is done.")


class WayResult(BaseModel):
    """How one way answered a question; figures are null where it was not scored."""

    ndcg: float | None = None
    recall: float | None = None
    reciprocal_rank: float | None = None
    found: list[UUID] = Field(description="Documents in the order of their best passages.")
    reason: str
    error: str
    degraded: str
    milliseconds: float


class ShownQuestion(_Shown):
    judgement_id: UUID | None
    question: str
    expected: list[ShownExpectation]
    results: dict[str, WayResult] | None = Field(description="By way; null until it was asked.")


def show_judgement(knowledge_base: KnowledgeBase, judgement: Judgement) -> dict[str, Any]:
    return _judgement(judgement, shown(knowledge_base, [judgement.expected])[0])


def show_judgements(knowledge_base: KnowledgeBase, judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    expected = shown(knowledge_base, [judgement.expected for judgement in judgements], quotes=False)
    return [_judgement(judgement, found) for judgement, found in zip(judgements, expected, strict=True)]


def _judgement(judgement: Judgement, expected: Sequence[Any]) -> dict[str, Any]:
    names = ("id", "question", "note", "author_name", "created_at", "updated_at")
    values = {name: getattr(judgement, name) for name in names}
    return ShownJudgement.model_validate({**values, "expected": list(expected)}).model_dump(mode="json")


def job_values(job: Job) -> dict[str, Any]:
    values = {name: getattr(job, name) for name in ShownJob.model_fields}
    return {**values, "error": job.error or None}


def show_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    # A JSON column forgets the order of its keys.
    figures = {way: evaluation.figures[way] for way in evaluation.settings["ways"] if way in evaluation.figures}
    values = {**job_values(evaluation), "comment": evaluation.comment, "figures": figures}
    return ShownEvaluation.model_validate(values).model_dump(mode="json")


def show_questions(knowledge_base: KnowledgeBase, rows: Sequence[EvaluatedQuestion]) -> list[dict[str, Any]]:
    expected = shown(knowledge_base, [row.expected for row in rows], quotes=False)
    return [
        ShownQuestion.model_validate(
            {"judgement_id": row.judgement_id, "question": row.question, "expected": list(found), "results": _results(row.results)}
        ).model_dump(mode="json")
        for row, found in zip(rows, expected, strict=True)
    ]


def _results(results: Mapping[str, Any] | None) -> dict[str, WayResult] | None:
    return None if results is None else {way: WayResult(**one) for way, one in results["ways"].items()}
