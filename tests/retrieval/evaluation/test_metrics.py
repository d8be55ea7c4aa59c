"""Figures against values that others published."""

import pytest

from retrieval.evaluation import metrics
from retrieval.evaluation.metrics import Figures

# Järvelin and Kekäläinen's example of a result; its ideal is of Wikipedia's page on discounted cumulative gain, which adds two documents.
GAINS, IDEAL = [3, 2, 3, 0, 1, 2], [3, 3, 3, 2, 2, 2, 1, 0]


def test_discounted_gain_of_the_known_example() -> None:
    assert metrics.dcg(GAINS) == pytest.approx(6.861, abs=5e-4)
    assert metrics.ndcg(GAINS, IDEAL, 6) == pytest.approx(0.785, abs=5e-4)


def test_ndcg_as_scikit_learn_documents_it() -> None:
    """ndcg_score([[10, 0, 0, 1, 5]], [[.1, .2, .3, 4, 70]]) is 0.69…; by [[.05, 1.1, 1., .5, .0]] it is 0.49…, and 0.35… at 4."""
    assert metrics.ndcg([5, 1, 0, 0, 10], [10, 0, 0, 1, 5], 5) == pytest.approx(0.69, abs=0.01)
    assert metrics.ndcg([0, 0, 1, 10, 5], [10, 0, 0, 1, 5], 5) == pytest.approx(0.49, abs=0.01)
    assert metrics.ndcg([0, 0, 1, 10, 5], [10, 0, 0, 1, 5], 4) == pytest.approx(0.35, abs=0.01)


def test_the_ideal_list_is_one_and_nothing_found_is_zero() -> None:
    assert metrics.measure([3, 2, 1], [1, 2, 3], 10) == Figures(1.0, 1.0, 1.0)
    assert metrics.measure([], [1, 2, 3], 10) == metrics.measure([0, 0], [1, 2, 3], 10) == Figures(0.0, 0.0, 0.0)
    assert metrics.measure([0, 0, 1], [1], 2) == Figures(0.0, 0.0, 0.0)  # beyond the k-th place


def test_more_than_k_wanted_can_still_be_ideal_but_not_whole() -> None:
    figures = metrics.measure([1, 1], [1, 1, 1, 1], 2)
    assert (figures.ndcg, figures.recall) == (1.0, 0.5)


def test_mean_reciprocal_rank_of_the_known_example() -> None:
    """Answers at places 3, 2 and 1: 11/18."""
    figures = [metrics.measure(gains, [1], 10) for gains in ([0, 0, 1], [0, 1], [1])]
    assert metrics.summarise(figures, empty=0, failed=0, milliseconds=[1, 5, 3]).mrr == pytest.approx(11 / 18)


def test_nothing_scored_has_no_mean() -> None:
    summary = metrics.summarise([], empty=0, failed=2, milliseconds=[])
    assert (summary.ndcg, summary.recall, summary.mrr, summary.scored, summary.failed) == (None, None, None, 0, 2)


@pytest.mark.parametrize(
    ("passages", "gains"),
    [
        ([("a", [0]), ("b", []), ("c", [1])], [3, 0.0, 1]),
        ([("a", [0]), ("a", []), ("b", []), ("b", []), ("c", [1])], [3, 0.0, 1]),  # a document has one place
        ([("a", []), ("a", [0])], [0.0, 3]),  # its first passage was not the one that was asked for
        ([("a", [0]), ("a", [0])], [3]),  # nothing counts twice
        ([("a", [1, 0])], [3, 1]),
        ([("a", [7])], [0.0]),  # gone meanwhile
        ([], []),
    ],
)
def test_places_of_a_list(passages, gains) -> None:
    assert metrics.gains_of(passages, {0: 3, 1: 1}) == gains
