"""What a search found beside what there is, by hand."""

import pytest

from retrieval.recall.figures import Probe, level_of, recall_at

EXACT = [(1, 0.9), (2, 0.8), (3, 0.7), (4, 0.7), (5, 0.1)]


@pytest.mark.parametrize(
    ("found", "k", "recall"),
    [
        (EXACT, 5, 1.0),
        ([(1, 0.9), (2, 0.8), (4, 0.7)], 3, 1.0),  # the tie was broken otherwise
        ([(1, 0.9), (5, 0.1)], 2, 0.5),
        ([(2, 0.8), (3, 0.7), (1, 0.9)], 2, 0.5),  # among the first k alone
        ([], 3, 0.0),
        (EXACT[:2], 10, 0.4),
        (EXACT[:4] + [(9, 0.1000000001)], 5, 1.0),
    ],
)
def test_recall(found, k, recall) -> None:
    assert recall_at(found, EXACT, k) == pytest.approx(recall)


def test_of_nothing_everything_was_found() -> None:
    assert recall_at([], [], 10) == 1.0


def test_a_level_sums_up_its_probes() -> None:
    probes = [Probe(1.0, 0, 2.0, 20.0, "hnsw"), Probe(0.5, 3, 4.0, 40.0, "hnsw, then exact"), Probe(0.9, 0, 3.0, 30.0, "hnsw")]
    level = level_of(0.1, 7, probes)
    assert (level["recall"], level["worst"], level["short"], level["missing"]) == (0.8, 0.5, 1, 3)
    assert level["plans"] == {"hnsw": 2, "hnsw, then exact": 1}
    assert (level["milliseconds"], level["exact_milliseconds"]) == ({"p50": 3.0, "p95": 4.0}, {"p50": 30.0, "p95": 40.0})
