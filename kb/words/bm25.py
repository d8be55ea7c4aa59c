"""BM25 as a dot product: what a chunk stores (impacts) times what a query sends (idf of its terms) is the score.

Only the document side depends on the length, only the query side on the frequencies: neither is rewritten when the other changes.
"""

import math
import struct
from collections.abc import Collection, Mapping, Sequence

from kb.words.hashing import DIMENSION

K1 = 1.2
# Less than the usual .75: chunks are cut to like lengths, and the end of a document is short for no reason of its own. Measured, in
# nDCG@10: German .938 to .941, English .971 to .972, Chinese and Cranfield the same, CISI .409 to .402.
B = 0.55
# A pasted page as a query is a search for its rarest words.
MAX_QUERY_TERMS = 64
# One step of the average length; within it the stored impacts stay as they are.
_STEP = 1.1
# How far beyond the edge of its step an average must move before another step is taken: else one document more or less flips it.
_MARGIN = 0.25


def idf(document_frequency: float, documents: float) -> float:
    """Lucene's: never negative, 0 for nothing indexed. Tolerates a frequency above the count (deltas are folded later)."""
    frequency = min(max(document_frequency, 0.0), max(documents, 0.0))
    return math.log1p((documents - frequency + 0.5) / (frequency + 0.5)) if documents > 0 else 0.0


def impacts(counts: Mapping[int, int], *, length: int, average_length: float) -> dict[int, float]:
    """tf·(k1+1) / (tf + k1·(1 − b + b·length/average)) for each term, between 0 and k1 + 1."""
    norm = K1 * (1.0 - B + B * length / average_length) if average_length > 0 else K1
    rise = K1 + 1.0
    return {term: count * rise / (count + norm) for term, count in counts.items()}


def query_weights(
    terms: Mapping[int, float], *, frequencies: Mapping[int, float], documents: float, limit: int = MAX_QUERY_TERMS
) -> dict[int, float]:
    """Weight times idf for each term of a query; of more than `limit` the rarest stay, ties by the query's order."""
    weights = {term: weight * idf(frequencies.get(term, 0.0), documents) for term, weight in terms.items()}
    if len(weights) <= limit:
        return weights
    # Terms that no chunk holds cannot match and must not crowd out those that can.
    rarest = sorted(terms, key=lambda term: (frequencies.get(term, 0.0) <= 0, frequencies.get(term, 0.0)))
    kept = frozenset(rarest[:limit])
    return {term: weight for term, weight in weights.items() if term in kept}


def ceiling(weights: Mapping[int, float], variants: Sequence[Collection[int]] = ()) -> float:
    """What no chunk can exceed: Σ idf·(k1+1). `variants` are the terms of each language of a query, of which a chunk has one."""
    if not variants:
        return sum(weights.values()) * (K1 + 1.0)
    return max(sum(weights.get(term, 0.0) for term in set(variant)) for variant in variants) * (K1 + 1.0)


def normalised(score: float, top: float) -> float:
    """0–1: a share of the ceiling."""
    return min(max(score / top, 0.0), 1.0) if top > 0 else 0.0


def score(impact: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """The dot product that Postgres computes, for tests and for stores without it."""
    return sum(impact[term] * weight for term, weight in weights.items() if term in impact)


def average_bucket(average: float, current: float | None = None) -> float:
    """The average length in steps of 10 %. `current` (a bucket) is kept until the average is well outside: a change is dear."""
    if not average > 0 or math.isinf(average):
        return 1.0
    position = math.log(average) / math.log(_STEP)
    if current and current > 0 and abs(position - math.log(current) / math.log(_STEP)) <= 0.5 + _MARGIN:
        return current
    return round(_STEP ** round(position), 6)


def to_sparsevec(vector: Mapping[int, float], dimension: int = DIMENSION) -> str:
    """pgvector's text form, 1-based and sorted. Values as float4 holds them; zeros are left out, as pgvector does."""
    return "{" + ",".join([f"{index}:{vector[index]:.9g}" for index in sorted(vector) if vector[index]]) + f"}}/{dimension}"


def to_sparsevec_bytes(vector: Mapping[int, float], dimension: int = DIMENSION) -> bytes:
    """pgvector's binary form (0-based, as it is sent), for binary COPY and parameters."""
    indices = sorted(index for index in vector if vector[index])
    count = len(indices)
    return struct.pack(
        f">3i{count}i{count}f", dimension, count, 0, *[index - 1 for index in indices], *[vector[index] for index in indices]
    )
