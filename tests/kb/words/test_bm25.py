import math
import struct

import pytest

from kb.words.bm25 import (
    K1,
    MAX_QUERY_TERMS,
    B,
    average_bucket,
    ceiling,
    idf,
    impacts,
    normalised,
    query_weights,
    score,
    to_sparsevec,
    to_sparsevec_bytes,
)
from kb.words.hashing import DIMENSION, MAX_TERMS, hash_counts, hash_weights, term_hash


def test_hashes_never_change_and_fit_a_sparsevec() -> None:
    # Stored in every row: another value here means every knowledge base must be indexed again.
    assert [term_hash(term) for term in ("lectern", "黑豹", "err_conn_reset")] == [250_930_380, 297_904_242, 398_764_829]
    assert all(1 <= term_hash(f"term {n}") < DIMENSION for n in range(5_000))
    assert term_hash("\ud800") == term_hash("\ud800")


def test_collisions_are_added_up() -> None:
    first = second = ""
    seen: dict[int, str] = {}
    for n in range(200_000):
        term = f"t{n}"
        if (other := seen.setdefault(term_hash(term), term)) != term:
            first, second = other, term
            break
    assert second, "200,000 terms of 10⁹ hashes collide some 20 times"
    assert hash_counts({first: 2, second: 3, "x": 1}) == {term_hash(first): 5, term_hash("x"): 1}
    assert hash_weights({first: 0.5, second: 1.0}) == {term_hash(first): 1.5}


def test_a_dump_keeps_its_commonest_terms() -> None:
    counts = {f"rare{n}": 1 for n in range(MAX_TERMS)} | {f"common{n}": 5 for n in range(10)}
    kept = hash_counts(counts)
    assert len(kept) == MAX_TERMS
    assert all(term_hash(f"common{n}") in kept for n in range(10))
    assert kept == hash_counts(dict(reversed(counts.items())))


def test_idf_is_never_negative_and_tolerates_late_counts() -> None:
    assert idf(1, 10) == pytest.approx(math.log(1 + 9.5 / 1.5))
    assert idf(10, 10) > 0
    assert idf(12, 10) == idf(10, 10)
    assert idf(-1, 10) == idf(0, 10)
    assert idf(0, 0) == 0
    assert idf(1, 100) > idf(50, 100)


def test_the_dot_product_is_bm25() -> None:
    counts, length, average, documents, frequency = {1: 3, 2: 1}, 120, 100.0, 50, {1: 5, 2: 20}
    expected = sum(
        math.log(1 + (documents - frequency[t] + 0.5) / (frequency[t] + 0.5)) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / average))
        for t, tf in counts.items()
    )
    weights = query_weights({1: 1.0, 2: 1.0, 3: 1.0}, frequencies=frequency, documents=documents)
    assert score(impacts(counts, length=length, average_length=average), weights) == pytest.approx(expected)


def test_no_chunk_exceeds_the_ceiling() -> None:
    weights = query_weights({1: 1.0, 2: 2.0}, frequencies={1: 1, 2: 3}, documents=9)
    best = score(impacts({1: 10**6, 2: 10**6}, length=1, average_length=1000), weights)
    assert 0.99 < normalised(best, ceiling(weights)) <= 1
    assert normalised(1, ceiling({})) == 0
    assert ceiling({1: 2.0, 2: 1.0, 3: 4.0}, [{1, 2}, {2, 3}]) == pytest.approx(5 * (K1 + 1))


def test_a_long_query_is_its_rarest_words() -> None:
    terms = dict.fromkeys(range(200), 1.0)
    kept = query_weights(terms, frequencies={n: 1000 - n for n in range(150)}, documents=1000)
    assert list(kept) == list(range(150 - MAX_QUERY_TERMS, 150))


def test_the_average_moves_in_steps_and_does_not_flip() -> None:
    bucket = average_bucket(100)
    assert bucket == pytest.approx(100, rel=0.05)
    assert average_bucket(bucket) == bucket == average_bucket(bucket * 1.04)
    edge = bucket * 1.1**0.5
    assert average_bucket(edge * 0.999) != average_bucket(edge * 1.001)
    assert average_bucket(edge * 1.001, bucket) == bucket
    assert average_bucket(bucket * 1.1, bucket) == pytest.approx(bucket * 1.1, rel=1e-4)
    assert average_bucket(0) == average_bucket(float("nan")) == average_bucket(float("inf")) == 1


def test_text_and_binary_form_are_one_vector() -> None:
    vector = {999_999_999: 0.5, 1: 2.2, 7: 0.0}
    assert to_sparsevec(vector) == "{1:2.2,999999999:0.5}/1000000000"
    assert to_sparsevec({}) == "{}/1000000000"
    dimension, count, unused, *rest = struct.unpack(">3i2i2f", to_sparsevec_bytes(vector))
    assert (dimension, count, unused) == (DIMENSION, 2, 0)
    assert rest == [0, 999_999_998, pytest.approx(2.2), 0.5]
