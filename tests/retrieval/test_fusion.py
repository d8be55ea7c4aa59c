import random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.fusion import EXACT, Fused, Weights, for_query, fuse


def order(fused: list[Fused[int]]) -> list[int]:
    return [hit.id for hit in fused]


def test_named_scores_and_ranks() -> None:
    hits = fuse([(1, 0.8), (2, 0.6)], [(2, 0.5, 10.0), (3, 0.25, 5.0)])
    assert hits == [
        Fused(2, pytest.approx((0.6 + 0.3) / 1.3), 1, 0.6, 2, 0.5, 10.0, 1),
        Fused(1, pytest.approx(0.8 / 1.3), 2, 0.8, 1, None, None, None),
        Fused(3, pytest.approx((0.6 + 0.15) / 1.3), 3, None, None, 0.25, 5.0, 2),
    ]


def test_the_side_whose_best_stands_out_counts_more() -> None:
    alike, outstanding = [0.5, 0.5, 0.5], [9.0, 1.0, 1.0]
    assert for_query(Weights(), alike, outstanding).keyword == pytest.approx(0.3 + (9 - 11 / 3) / 9)
    assert for_query(Weights(), [0.9, 0.1, 0.1], [2.0, 2.0, 2.0]).keyword == 0  # never below
    assert for_query(Weights(), alike, alike) == Weights()
    assert for_query(Weights(keyword=0), alike, outstanding).keyword == 0
    assert for_query(Weights(), [], outstanding) == for_query(Weights(), [float("nan")], outstanding) == Weights()
    assert for_query(Weights(), alike, []) == Weights()
    # What lies below the floor is as far off as can be: cosines of .7 to .9 are a wide range to a model of the e5 family.
    assert for_query(Weights(floor=0.7), [0.9, 0.7, 0.7], alike).keyword < for_query(Weights(), [0.9, 0.7, 0.7], alike).keyword


def test_a_chunk_of_one_side_takes_the_lowest_of_the_other() -> None:
    by_id = {hit.id: hit.score for hit in fuse([(1, 0.9), (2, 0.4)], [(1, 1.0, 8.0), (3, 0.5, 4.0)])}
    assert by_id[3] == pytest.approx((0.4 + 0.3 * 0.5) / 1.3)
    assert by_id[2] == pytest.approx(0.4 / 1.3)


@pytest.mark.parametrize(
    ("vector", "keyword", "expected"),
    [
        ([], [], []),
        ([(1, 0.4), (2, 0.9)], [], [(2, 0.9), (1, 0.4)]),
        ([], [(1, 0.1, 2.0), (2, 0.2, 4.0)], [(2, 1.0), (1, 0.5)]),
        ([(1, 0.4)], [(2, 0.0, 0.0)], [(1, 0.4)]),
        ([(1, -0.2), (2, 1.0000001)], [], [(2, 1.0), (1, 0.0)]),
        ([(1, float("nan")), (2, 0.5)], [(3, 0.5, float("inf"))], [(2, 0.5)]),
    ],
)
def test_a_side_without_hits_has_no_say(vector: list, keyword: list, expected: list) -> None:
    assert [(hit.id, pytest.approx(hit.score)) for hit in fuse(vector, keyword)] == expected


def test_ties_go_by_id_whatever_the_order() -> None:
    ids = [UUID(int=n) for n in range(20)]
    shuffled = random.Random(3).sample(ids, len(ids))
    assert [hit.id for hit in fuse([(one, 0.5) for one in shuffled], [(one, 0.1, 1.0) for one in reversed(shuffled)])] == ids


def test_an_id_named_twice_counts_once_with_its_best() -> None:
    assert [(hit.id, hit.vector_score, hit.keyword_raw) for hit in fuse([(1, 0.2), (1, 0.7)], [(1, 0.1, 1.0), (1, 0.4, 4.0)])] == [
        (1, 0.7, 4.0)
    ]


def test_generators_are_read_once() -> None:
    assert order(fuse(((n, n / 10) for n in range(3)), ((n, 0.1, 1.0) for n in range(3)))) == [2, 1, 0]


def test_weights() -> None:
    vector, keyword = [(1, 0.7), (2, 0.2)], [(2, 0.9, 9.0), (1, 0.1, 1.0)]
    assert order(fuse(vector, keyword)) == [1, 2]
    assert order(fuse(vector, keyword, weights=EXACT)) == [2, 1]
    assert order(fuse(vector, keyword, weights=Weights(keyword=0))) == [1, 2]
    for wrong in ({"keyword": -1}, {"keyword": float("nan")}, {"floor": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            Weights(**wrong)


def test_the_floor_undoes_a_squeezed_cosine() -> None:
    draw = random.Random(1)
    vector = [(n, draw.random()) for n in range(50)]
    keyword = [(n, 0.0, draw.random()) for n in range(25, 75)]
    squeezed = [(n, 0.7 + 0.3 * cosine) for n, cosine in vector]
    assert order(fuse(squeezed, keyword, weights=Weights(floor=0.7))) == order(fuse(vector, keyword))


def test_several_knowledge_bases_share_one_measure() -> None:
    whole = fuse([], [(1, 0.5, 10.0), (2, 0.2, 4.0)])
    part = fuse([], [(2, 0.2, 4.0)], best=10.0)
    assert part[0].score == whole[1].score


def test_with_both_scores_known_the_depth_does_not_matter() -> None:
    draw = random.Random(2)
    cosines = {n: draw.random() for n in range(300)}
    raws = {n: draw.random() * 20 for n in range(300)}

    def top(depth: int) -> list[int]:
        near = sorted(cosines, key=lambda n: -cosines[n])[:depth]
        said = sorted(raws, key=lambda n: -raws[n])[:depth]
        union = set(near) | set(said)
        return order(fuse([(n, cosines[n]) for n in union], [(n, 0.0, raws[n]) for n in union]))[:10]

    assert top(100) == top(200) == top(300)


_SCORE = st.floats(min_value=-1, max_value=1)


@given(st.lists(st.tuples(st.integers(0, 30), _SCORE)), st.lists(st.tuples(st.integers(0, 30), _SCORE, st.floats(0, 100))))
@settings(max_examples=200, deadline=None)
def test_scores_lie_between_0_and_1_and_every_hit_is_there_once(vector: list, keyword: list) -> None:
    hits = fuse(vector, keyword)
    assert {hit.id for hit in hits} == {key for key, _ in vector} | {key for key, _, raw in keyword if raw > 0}
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert all(0 <= hit.score <= 1 for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert fuse(list(reversed(vector)), list(reversed(keyword))) == hits
