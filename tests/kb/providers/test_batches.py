import pytest

from kb.providers.batches import BatchLimits, make_batches


def test_both_limits_hold_and_nothing_is_lost():
    counts = [7, 300, 12, 12, 90, 1, 250, 33, 5, 41]
    batches = make_batches(counts, BatchLimits(max_texts=3, max_tokens=300))
    assert sorted(index for batch in batches for index in batch) == list(range(len(counts)))
    assert all(len(batch) <= 3 for batch in batches)
    assert all(sum(counts[i] for i in batch) <= 300 for batch in batches)


def test_similar_lengths_share_a_batch():
    assert make_batches([1, 100, 2, 99], BatchLimits(max_texts=2, max_tokens=1000)) == [[1, 3], [2, 0]]


@pytest.mark.parametrize("counts", [[], [5000], [5000, 5000]])
def test_a_text_above_the_limit_goes_alone(counts):
    assert make_batches(counts, BatchLimits(max_texts=8, max_tokens=100)) == [[i] for i in range(len(counts))]
