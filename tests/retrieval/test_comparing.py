"""Ranked lists side by side."""

from retrieval.comparing import Pair, Row, lay_out, pair_up


def test_rows_stand_by_their_best_place() -> None:
    assert lay_out([["a", "b", "c"], ["c", "d", "a"], []]) == [
        Row("a", (1, 3, None)),
        Row("c", (3, 1, None)),
        Row("b", (2, None, None)),
        Row("d", (None, 2, None)),
    ]
    assert lay_out([]) == lay_out([[], []]) == []
    assert lay_out([["a", "a"]]) == [Row("a", (1,))]


def test_pairs_share_and_differ() -> None:
    assert pair_up([["a", "b", "c"], ["c", "d"], []]) == [
        Pair(0, 1, 1, 0.25, ("a", "b"), ("d",)),
        Pair(0, 2, 0, 0.0, ("a", "b", "c"), ()),
        Pair(1, 2, 0, 0.0, ("c", "d"), ()),
    ]
    assert pair_up([[], []]) == [Pair(0, 1, 0, 1.0, (), ())]
    assert pair_up([["a"]]) == []
