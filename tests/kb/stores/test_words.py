import math
import random

import pytest
from django.db import connection

from kb.models import Chunk
from kb.stores import scope, statistics, words
from kb.stores.statistics import fold_statistics, read_corpus, refresh_impacts
from kb.stores.words import rarest_terms, search_words
from kb.words import bm25
from kb.words.analysis import terms
from kb.words.hashing import MAX_TERMS, hash_counts, term_hash
from kb.words.query import WordQuery, parse_query

WORDS = "cat", "dog", "fish", "bird"
CAT, DOG, FISH, BIRD = map(term_hash, WORDS)


def search(shelf, *terms, limit=10, excluded=(), **more):
    more.setdefault("knowledge_bases", [shelf.id])
    named = dict(zip((CAT, DOG, FISH, BIRD), WORDS, strict=True))
    query = WordQuery(terms={named.get(term, str(term)): 1.0 for term in terms}, excluded_terms=excluded)
    return search_words(organization=shelf.organization, query=query, limit=limit, **more)


def rows(query: str):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def corpus(shelf, *terms):
    return read_corpus(organization=shelf.organization, knowledge_bases=[shelf.id], terms=terms)


def test_the_score_is_bm25(shelf):
    counts = [{CAT: 2, DOG: 1}, {CAT: 1, FISH: 3}, {FISH: 1}]
    chunks = shelf.add_document(3)
    shelf.add_words(chunks, counts)
    average = bm25.average_bucket(8 / 3)
    weights = {CAT: bm25.idf(2, 3), FISH: bm25.idf(2, 3)}
    expected = {
        chunk: bm25.score(bm25.impacts(held, length=sum(held.values()), average_length=average), weights)
        for chunk, held in zip(chunks, counts, strict=True)
    }
    found = search(shelf, CAT, FISH)
    assert {chunk: score for chunk, score, _ in found.rows} == pytest.approx(expected, rel=1e-5)
    assert found.rows[0][0] == chunks[1]
    assert found.rows == sorted(found.rows, key=lambda row: -row[1])
    assert [share for _, _, share in found.rows] == pytest.approx([score / bm25.ceiling(weights) for _, score, _ in found.rows])


def test_chunks_without_any_term_are_no_matches(shelf):
    chunks = shelf.add_document(3)
    shelf.add_words(chunks, [{CAT: 1}, {DOG: 1}, {}])
    assert [chunk for chunk, _, _ in search(shelf, CAT).rows] == chunks[:1]
    assert search(shelf, BIRD).rows == []
    assert search(shelf).rows == []


def test_the_smallest_and_largest_hash_and_the_most_terms(shelf):
    chunks = shelf.add_document(1)
    counts = {**dict.fromkeys([1, 999_999_999, *range(2, 3998)], 1), BIRD: 2}
    assert len(counts) == MAX_TERMS - 1
    shelf.add_words(chunks, [counts])
    assert search(shelf, BIRD).rows[0][0] == chunks[0]
    assert rows("SELECT impacts::text ~ '^.1:.*,999999999:' FROM lexical") == [(True,)]


def test_excluded_terms_keep_chunks_out(shelf):
    chunks = shelf.add_document(2)
    shelf.add_words(chunks, [{CAT: 1, DOG: 1}, {CAT: 1}])
    assert [chunk for chunk, _, _ in search(shelf, CAT, excluded=("dog",)).rows] == chunks[1:]


def test_text_to_answer_through_the_analysis(shelf):
    texts = ["Cats chase a mouse", "The dog sleeps", "A library of cats and dogs"]
    chunks = shelf.add_document(3)
    shelf.add_words(chunks, [hash_counts(terms(text, "en")) for text in texts])
    query = parse_query("which cat?", ["en"])
    found = search_words(organization=shelf.organization, knowledge_bases=[shelf.id], query=query, limit=5)
    assert {chunk for chunk, _, _ in found.rows} == {chunks[0], chunks[2]}
    assert all(0 < share <= 1 for _, _, share in found.rows)


def test_pending_and_folded_statistics_give_the_same_scores(shelf):
    chunks = shelf.add_document(4)
    shelf.add_words(chunks[:2], [{CAT: 1}, {CAT: 1, DOG: 1}])
    shelf.add_words(chunks[2:], [{DOG: 2}, {FISH: 1}])
    before = search(shelf, CAT, DOG).rows
    assert corpus(shelf, CAT, DOG, BIRD) == statistics.Corpus(4, {CAT: 2, DOG: 2})
    assert fold_statistics(shelf.id) == 2
    assert fold_statistics(shelf.id) == 0
    assert rows("SELECT * FROM lexical_delta") == []
    assert corpus(shelf, CAT, DOG, BIRD) == statistics.Corpus(4, {CAT: 2, DOG: 2})
    assert search(shelf, CAT, DOG).rows == before


def test_deleting_chunks_takes_words_and_counts_back(shelf):
    chunks = shelf.add_document(3)
    shelf.add_words(chunks, [{CAT: 1}, {CAT: 5, DOG: 1}, {DOG: 1}])
    fold_statistics(shelf.id)
    Chunk.objects.filter(pk__in=chunks[:2]).delete()
    assert corpus(shelf, CAT, DOG) == statistics.Corpus(1, {DOG: 1})
    fold_statistics(shelf.id)
    assert rows("SELECT term, df FROM lexical_term") == [(DOG, 1)]
    assert rows("SELECT chunks, length FROM lexical_total") == [(1, 1)]
    assert [chunk for chunk, _, _ in search(shelf, CAT, DOG).rows] == chunks[2:]


def test_a_deleted_knowledge_base_leaves_nothing(shelf):
    chunks = shelf.add_document(2)
    shelf.add_words(chunks, [{CAT: 1}, {DOG: 1}])
    shelf.add_vectors(chunks, [[1.0] * 256] * 2)
    fold_statistics(shelf.id)
    Chunk.objects.all().delete()
    shelf.knowledge_base.delete()
    for table in ("lexical", "lexical_term", "lexical_total", "lexical_delta", "embedding_256", "embedding_use"):
        assert rows(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_deltas_do_not_pile_up_without_the_task(shelf, monkeypatch):
    monkeypatch.setattr(statistics, "PENDING_AT_MOST", 3)
    for _ in range(10):
        shelf.add_words(shelf.add_document(1), [{CAT: 1}])
    assert rows("SELECT count(*) <= 4 FROM lexical_delta") == [(True,)]
    assert corpus(shelf, CAT) == statistics.Corpus(10, {CAT: 10})


def test_another_organization_finds_and_counts_nothing(shelf, make_shelf):
    shelf.add_words(shelf.add_document(1), [{CAT: 1}])
    other = make_shelf("Foreign")
    other.add_words(other.add_document(2), [{CAT: 1}, {DOG: 1}])
    asked = [shelf.id, other.id]
    assert len(search(other, CAT, knowledge_bases=asked).rows) == 1
    for fold in (False, True):
        if fold:
            fold_statistics(shelf.id)
            fold_statistics(other.id)
        assert read_corpus(organization=other.organization, knowledge_bases=asked, terms=[CAT]) == statistics.Corpus(2, {CAT: 1})


def test_several_knowledge_bases_are_one_corpus(shelf, make_shelf):
    other = make_shelf("Second", shelf.knowledge_base.organization)
    shelf.add_words(shelf.add_document(2), [{CAT: 1}, {DOG: 1}])
    mine = other.add_document(2)
    other.add_words(mine, [{CAT: 1}, {FISH: 1}])
    pooled = read_corpus(organization=shelf.organization, knowledge_bases=[shelf.id, other.id], terms=[CAT, FISH])
    assert pooled == statistics.Corpus(4, {CAT: 2, FISH: 1})
    assert search(shelf, FISH, CAT, knowledge_bases=[shelf.id, other.id]).rows[0][0] == mine[1]


def test_a_word_weighs_the_same_in_every_language(shelf):
    """One document of unknown language among many English ones: in it every word is rare, and none is worth more for that."""
    chunks = shelf.add_document(11)
    shelf.add_words(chunks, [*[hash_counts(terms("the games we play", "en"))] * 10, hash_counts(terms("the games and other things", None))])
    query = parse_query("what are the games", ["en", None])
    found = search_words(organization=shelf.organization, knowledge_bases=[shelf.id], query=query, limit=20)
    assert len(found.rows) == 11
    assert found.rows[-1][0] == chunks[-1], "it is longer, and that is all"


def test_filters_by_documents(shelf):
    first, second = shelf.add_document(2), shelf.add_document(2)
    shelf.add_words(first + second, [{CAT: 1}] * 4)
    assert {chunk for chunk, _, _ in search(shelf, CAT, documents=[shelf.documents[1].pk]).rows} == set(second)
    assert search(shelf, CAT, documents=[]).rows == []


def test_narrowing_takes_the_rarest_terms_within_the_budget():
    weights, frequencies = {CAT: 1.0, DOG: 1.0, FISH: 1.0}, {CAT: 900, DOG: 50, FISH: 40}
    assert rarest_terms(weights, frequencies, 100) == [FISH, DOG]
    assert rarest_terms(weights, frequencies, 1000) == [FISH, DOG, CAT]
    assert rarest_terms(weights, frequencies, 1) == [FISH]


def test_a_narrowed_search_finds_the_same_and_never_less(shelf, monkeypatch):
    chunks = shelf.add_document(60)
    shelf.add_words(chunks, [{CAT: 1, **({DOG: 1} if i % 3 == 0 else {}), **({FISH: 2} if i % 20 == 0 else {})} for i in range(60)])
    exact = search(shelf, CAT, DOG, FISH, limit=3)
    everything = search(shelf, CAT, DOG, FISH, limit=60)
    monkeypatch.setattr(words, "EXACT_CHUNKS", 10)
    monkeypatch.setattr(words, "LEAST_CANDIDATES", 30)
    narrowed = search(shelf, CAT, DOG, FISH, limit=3)
    assert (exact.plan, narrowed.plan) == ("exact", "narrowed")
    assert narrowed.rows == exact.rows
    assert search(shelf, CAT, DOG, FISH, limit=60) == words.WordMatches(everything.rows, "narrowed, then exact")
    assert len(everything.rows) == 60


def test_impacts_follow_the_average_without_the_text(shelf):
    counts = [{n: 1 + n % 7 for n in range(1, 30)}, {CAT: 300}, {}]
    chunks = shelf.add_document(3)
    shelf.add_words(chunks[:1], counts[:1])
    first = rows("SELECT average FROM lexical_total")[0][0]
    shelf.add_words(chunks[1:], counts[1:])
    fold_statistics(shelf.id)
    second = rows("SELECT average FROM lexical_total")[0][0]
    total = sum(sum(held.values()) for held in counts)
    assert second == bm25.average_bucket(total / 3, first) != first
    assert refresh_impacts(shelf.id, 2) == 2
    assert refresh_impacts(shelf.id, 2) == 1
    assert refresh_impacts(shelf.id, 2) == 0
    for chunk, held in zip(chunks, counts, strict=True):
        found = rows(f"SELECT average, impacts FROM lexical WHERE chunk = {chunk}")[0]
        wanted = bm25.impacts(held, length=sum(held.values()), average_length=second)
        body = str(found[1]).partition("}")[0][1:]
        stored = {int(k): float(v) for k, v in (pair.split(":") for pair in body.split(",") if pair)}
        assert math.isclose(found[0], second)
        assert stored == pytest.approx(wanted, rel=1e-5)
    assert rows("SELECT count(*) FROM lexical_delta") == [(0,)]


@pytest.mark.parametrize("seed", range(5))
def test_statistics_equal_a_recount_whatever_comes_and_goes(shelf, seed):
    """Publications, removals and foldings in any order."""
    draw = random.Random(seed)
    for step in draw.choices(["add", "remove", "fold", "refresh"], [4, 3, 1, 1], k=40):
        if step == "add":
            held = [{draw.randint(1, 9): draw.randint(1, 5) for _ in range(draw.randint(0, 9))} for _ in range(draw.randint(1, 4))]
            shelf.add_words(shelf.add_document(len(held)), held)
        elif step == "remove":
            ids = list(Chunk.objects.order_by("pk").values_list("pk", flat=True))
            Chunk.objects.filter(pk__in=draw.sample(ids, min(draw.randint(1, 3), len(ids)))).delete()
        elif step == "fold":
            fold_statistics(shelf.id)
        else:
            refresh_impacts(shelf.id, 3)
    counted = corpus(shelf, *range(1, 10))
    assert counted.chunks == Chunk.objects.count()
    assert sorted(counted.frequencies.items()) == rows("SELECT term, count(*) FROM lexical, unnest(terms) term GROUP BY term ORDER BY term")
    fold_statistics(shelf.id)
    assert corpus(shelf, *range(1, 10)) == counted
    assert rows("SELECT coalesce(sum(length), 0) FROM lexical_total") == rows("SELECT coalesce(sum(length), 0) FROM lexical")


def test_scores_are_those_of_a_reference(shelf):
    """Lucene's BM25, written out as it stands in textbooks, on the same counts; the average length is its bucket, known to 5 %."""
    draw = random.Random(3)
    counts = [{draw.randint(1, 40): draw.randint(1, 6) for _ in range(draw.randint(1, 25))} for _ in range(80)]
    chunks = shelf.add_document(len(counts))
    shelf.add_words(chunks, counts)
    fold_statistics(shelf.id)
    while refresh_impacts(shelf.id):
        pass
    average = rows("SELECT average FROM lexical_total")[0][0]
    assert average == pytest.approx(sum(sum(held.values()) for held in counts) / len(counts), rel=0.08)
    asked = [CAT, *draw.sample(range(1, 41), 5)]

    def reference(held: dict[int, int]) -> float:
        length, score = sum(held.values()), 0.0
        for term in asked:
            n = sum(term in other for other in counts)
            idf = math.log(1 + (len(counts) - n + 0.5) / (n + 0.5))
            tf = held.get(term, 0)
            score += idf * tf * 2.2 / (tf + 1.2 * (1 - bm25.B + bm25.B * length / average))
        return score

    expected = {chunk: score for chunk, held in zip(chunks, counts, strict=True) if (score := reference(held)) > 0}
    scan = words._Scan(
        scope.Scope(shelf.organization, [shelf.id]),
        vector=bm25.to_sparsevec(
            bm25.query_weights(dict.fromkeys(asked, 1.0), frequencies=corpus(shelf, *asked).frequencies, documents=len(counts))
        ),
        excluded=[],
        limit=100,
    )
    assert dict(scan.run()) == pytest.approx(expected, rel=1e-5)
