"""Figures of one ranked list and of many. Pure.

`gains` are the grades of a list's places, best place first, 0 for what nobody asked for; `ideal` the grades of all that should be found.

* nDCG: Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4), 2002. The gain is the grade and the
  discount log2(place + 1), as trec_eval's `ndcg_cut` has them.
* Recall: the share of what should be found that is among the first k.
* Reciprocal rank: Voorhees, The TREC-8 question answering track report, 1999; its mean over questions is MRR.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one question: each between 0 and 1."""

    ndcg: float
    recall: float
    reciprocal_rank: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the questions that were scored, None where none was. `failed` answered with an error and count in no mean; `empty` found
    nothing; `milliseconds` is the median time of a search."""

    ndcg: float | None
    recall: float | None
    mrr: float | None
    scored: int
    empty: int
    failed: int
    milliseconds: float | None


def dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1) if gain)


def ndcg(gains: Sequence[float], ideal: Iterable[float], k: int) -> float:
    """1.0 where nothing better can be ranked; 0.0 where nothing should be found."""
    best = dcg(sorted(ideal, reverse=True)[:k])
    return dcg(gains[:k]) / best if best else 0.0


def recall(gains: Sequence[float], wanted: int, k: int) -> float:
    return sum(gain > 0 for gain in gains[:k]) / wanted if wanted else 0.0


def reciprocal_rank(gains: Sequence[float], k: int) -> float:
    return next((1.0 / place for place, gain in enumerate(gains[:k], start=1) if gain > 0), 0.0)


def measure(gains: Sequence[float], ideal: Collection[float], k: int) -> Figures:
    return Figures(ndcg(gains, ideal, k), recall(gains, len(ideal), k), reciprocal_rank(gains, k))


def gains_of(passages: Iterable[tuple[str, Collection[int]]], grades: Mapping[int, float]) -> list[float]:
    """The places of a ranked list of passages, each (its document, the expectations that it fulfils).

    A further passage of a document takes no place unless it fulfils something new; one that fulfils several takes a place for each, the
    highest grade first.
    """
    gains: list[float] = []
    fulfilled: set[int] = set()
    documents: set[str] = set()
    for document, fulfils in passages:
        fresh = {expectation for expectation in fulfils if expectation in grades} - fulfilled
        if fresh:
            gains += sorted((grades[expectation] for expectation in fresh), reverse=True)
        elif document not in documents:
            gains.append(0.0)
        fulfilled |= fresh
        documents.add(document)
    return gains


def summarise(figures: Sequence[Figures], *, empty: int, failed: int, milliseconds: Sequence[float]) -> Summary:
    scored = len(figures)
    return Summary(
        ndcg=fmean(one.ndcg for one in figures) if scored else None,
        recall=fmean(one.recall for one in figures) if scored else None,
        mrr=fmean(one.reciprocal_rank for one in figures) if scored else None,
        scored=scored,
        empty=empty,
        failed=failed,
        milliseconds=median(milliseconds) if milliseconds else None,
    )
