"""Answers of a comparison: each variant's own, and all of them side by side."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from retrieval.api.schemas import SearchAnswer, ShownDocument, ShownScores, show_answer
from retrieval.comparing import lay_out, pair_up
from retrieval.services import Comparison


class ComparedAnswer(BaseModel):
    label: str
    answer: SearchAnswer | None
    reason: str | None
    error: str | None = Field(description="Why this variant failed.")
    trace_id: UUID


class ComparedPlace(BaseModel):
    """Where a variant has a passage."""

    rank: int
    score: float
    scores: ShownScores


class ComparedPassage(BaseModel):
    """A passage that any variant found, by the chunk that was found."""

    citation: str
    document: ShownDocument
    heading_path: list[str]
    page: int | None
    places: list[ComparedPlace | None] = Field(description="In the order of the variants; null where one did not find it.")


class ComparedPair(BaseModel):
    """Two variants by their numbers, from 0."""

    first: int
    second: int
    shared: int
    overlap: float = Field(description="What both found as a part of what either found; 1 for two that found nothing.")
    only_first: list[str] = Field(description="Citations.")
    only_second: list[str]


class CompareAnswer(BaseModel):
    """`results` in the order of the variants; `passages` by their best place in any; `pairs` of those that did not fail."""

    query: str
    results: list[ComparedAnswer]
    passages: list[ComparedPassage]
    pairs: list[ComparedPair]


def show_comparison(query: str, compared: Sequence[Comparison]) -> dict[str, Any]:
    hits = [list(one.answer.hits) if one.answer else [] for one in compared]
    lists = [[hit.citation for hit in found] for found in hits]
    by_citation = {hit.citation: hit for found in reversed(hits) for hit in found}
    passages = []
    for row in lay_out(lists):
        hit = by_citation[row.id]
        found = [None if place is None else hits[number][place - 1] for number, place in enumerate(row.places)]
        places = [
            None if place is None or own is None else {"rank": place, "score": own.score, "scores": own.scores}
            for place, own in zip(row.places, found, strict=True)
        ]
        told = {"document": hit.document, "heading_path": list(hit.heading_path), "page": hit.page, "places": places}
        shown = ComparedPassage.model_validate({"citation": row.id, **told}, from_attributes=True)
        passages.append(shown.model_dump(mode="json"))
    answered = [number for number, one in enumerate(compared) if one.answer]
    pairs = [
        ComparedPair(
            first=answered[pair.first],
            second=answered[pair.second],
            shared=pair.shared,
            overlap=round(pair.overlap, 4),
            only_first=list(pair.only_first),
            only_second=list(pair.only_second),
        ).model_dump(mode="json")
        for pair in pair_up([lists[number] for number in answered])
    ]
    return {"query": query, "results": [_result(one) for one in compared], "passages": passages, "pairs": pairs}


def _result(compared: Comparison) -> dict[str, Any]:
    answer, failure = compared.answer, compared.failure
    return {
        "label": compared.variant.label,
        "answer": show_answer(answer) if answer else None,
        "reason": failure.extra["reason"] if failure else answer.reason if answer else None,
        "error": failure.message if failure else None,
        "trace_id": failure.extra["trace_id"] if failure else str(answer.trace_id) if answer else None,
    }
