"""Our analysis and weights, against an independent BM25 on a real set of questions."""

import json
import math
from collections import defaultdict
from pathlib import Path

import bm25s
import pytest
import Stemmer

from kb.words.analysis import document_terms, weighted_terms
from kb.words.bm25 import K1, B, ceiling, impacts, query_weights
from kb.words.hashing import hash_counts, hash_weights
from kb.words.languages import stop_words

CRANFIELD = Path(__file__).parents[4] / "shared" / "data" / "ir" / "cranfield"

pytestmark = pytest.mark.skipif(not CRANFIELD.is_dir(), reason=f"the retrieval set {CRANFIELD} is not on this machine")

Relevance = dict[str, dict[str, float]]


def _lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (CRANFIELD / name).read_text(encoding="utf-8").splitlines()]


def _ndcg(ranking: list[str], gains: dict[str, float]) -> float:
    ideal = sorted(gains.values(), reverse=True)[:10]
    reached = sum(gains.get(name, 0) / math.log2(place + 2) for place, name in enumerate(ranking[:10]))
    return reached / sum(gain / math.log2(place + 2) for place, gain in enumerate(ideal))


def _rank_ours(documents: dict[str, str], queries: dict[str, str]) -> dict[str, list[str]]:
    analysed = {name: document_terms(text, "en") for name, text in documents.items()}
    average = sum(length for _, length in analysed.values()) / len(analysed)
    postings: dict[int, dict[str, float]] = defaultdict(dict)
    for name, (counts, length) in analysed.items():
        for term, impact in impacts(hash_counts(counts), length=length, average_length=average).items():
            postings[term][name] = impact
    frequencies = {term: len(found) for term, found in postings.items()}
    rankings = {}
    for number, text in queries.items():
        weights = query_weights(hash_weights(weighted_terms(text, "en")), frequencies=frequencies, documents=len(documents))
        scores: dict[str, float] = defaultdict(float)
        for term, weight in weights.items():
            for name, impact in postings.get(term, {}).items():
                scores[name] += weight * impact
        assert max(scores.values()) <= ceiling(weights)
        rankings[number] = sorted(scores, key=lambda name: (-scores[name], name))[:10]
    return rankings


def _rank_reference(documents: dict[str, str], queries: dict[str, str]) -> dict[str, list[str]]:
    names = list(documents)
    options = {"stopwords": sorted(stop_words("english")), "stemmer": Stemmer.Stemmer("english"), "show_progress": False}
    index = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index(bm25s.tokenize(list(documents.values()), **options), show_progress=False)
    found, _ = index.retrieve(bm25s.tokenize(list(queries.values()), **options), k=10, show_progress=False)
    return {number: [names[place] for place in row] for number, row in zip(queries, found, strict=True)}


def test_ranking_is_as_good_as_the_reference() -> None:
    documents = {row["_id"]: f"{row['title']}\n\n{row['text']}" for row in _lines("corpus.jsonl")}
    queries = {row["_id"]: row["text"] for row in _lines("queries.jsonl")}
    gains: Relevance = defaultdict(dict)
    for line in (CRANFIELD / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, gain = line.split("\t")
        gains[query][document] = float(gain)

    def quality(rankings: dict[str, list[str]]) -> float:
        judged = [_ndcg(rankings[query], found) for query, found in gains.items() if query in rankings]
        return sum(judged) / len(judged)

    ours, reference = quality(_rank_ours(documents, queries)), quality(_rank_reference(documents, queries))
    assert reference > 0.42
    assert ours >= 0.97 * reference
