"""What is done with candidates, by a knowledge base: what it may say, and what is refused by name."""

from typing import Any

import pytest

from config.errors import InvalidInput
from kb.schemas import dump, load


def test_defaults_are_those_of_the_product() -> None:
    assert dump(load({"name": "Handbooks"}))["retrieval"] == {
        "mode": "hybrid",
        "max_results": 5,
        "min_score": {"vector": 0.3, "keyword": 0.0, "reranked": 0.0},
        "ef_search": None,
        "neighbours": 1,
        "rerank": None,
        "rerank_depth": 50,
        "diversity": 0.0,
        "max_per_document": 0,
        "collapse_duplicates": True,
        "fusion": {"keyword_weight": 0.3, "vector_floor": 0.0},
    }


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("ef_search", [10, 1000, None], [9, 1001, "50"]),
        ("rerank_depth", [1, 200], [0, 201, "5", None]),
        ("diversity", [0, 0.5, 1], [-0.1, 1.1, None]),
        ("max_per_document", [0, 100], [-1, 101, 1.5]),
        ("collapse_duplicates", [True, False], [1, None]),
        ("fusion", [{}, {"keyword_weight": 0}, {"keyword_weight": 10, "vector_floor": 0.95}], [{"keyword_weight": 11}, {"floor": 0}, None]),
    ],
)
def test_ranges(name: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert load({"name": "Handbooks", "retrieval": {name: value}})
    for value in bad:
        with pytest.raises(InvalidInput) as caught:
            load({"name": "Handbooks", "retrieval": {name: value}})
        assert caught.value.extra["errors"][0]["path"].startswith(f"retrieval.{name}")


@pytest.mark.parametrize(
    ("retrieval", "expected"),
    [
        ({"min_score": 0.5}, {"vector": 0.5, "keyword": 0, "reranked": 0}),
        ({"mode": "vector", "min_score": 1}, {"vector": 1, "keyword": 0, "reranked": 0}),
        ({"mode": "keyword", "min_score": 0.2}, {"vector": 0.3, "keyword": 0.2, "reranked": 0}),
        ({"mode": "keyword", "min_score": {"reranked": 0.2}}, {"vector": 0.3, "keyword": 0, "reranked": 0.2}),
    ],
)
def test_a_plain_min_score_sets_the_one_of_the_mode(retrieval: dict[str, Any], expected: dict[str, float]) -> None:
    assert dump(load({"name": "kb", "retrieval": retrieval}, strict=True))["retrieval"]["min_score"] == expected
