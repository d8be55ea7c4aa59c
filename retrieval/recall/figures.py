"""What a search found beside what there is. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

# Cosines of equal texts differ by the order in which they are summed.
_EQUAL = 1e-6

Ranked = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Probe:
    """One question: recall@k, rows that are missing though they exist, milliseconds of the search and of the exact scan, and the plan."""

    recall: float
    missing: int
    milliseconds: float
    exact_milliseconds: float
    plan: str


def recall_at(found: Ranked, exact: Ranked, k: int) -> float:
    """The share of the k nearest that was found. A chunk as near as the k-th counts as it: ties are broken by chance. 1.0 of nothing."""
    nearest = exact[:k]
    if not nearest:
        return 1.0
    least = nearest[-1][1] - _EQUAL
    return min(sum(cosine >= least for _, cosine in found[:k]), len(nearest)) / len(nearest)


def level_of(selectivity: float, documents: int, probes: Sequence[Probe]) -> dict[str, Any]:
    """The figures of one share of the documents."""
    return {
        "selectivity": selectivity,
        "documents": documents,
        "queries": len(probes),
        "recall": round(fmean(probe.recall for probe in probes), 4),
        "worst": round(min(probe.recall for probe in probes), 4),
        "short": sum(probe.missing > 0 for probe in probes),
        "missing": sum(probe.missing for probe in probes),
        "plans": dict(Counter(probe.plan for probe in probes)),
        "milliseconds": _times([probe.milliseconds for probe in probes]),
        "exact_milliseconds": _times([probe.exact_milliseconds for probe in probes]),
    }


def _times(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50": round(median(ordered), 2), "p95": round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 2)}
