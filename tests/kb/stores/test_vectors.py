import re

import numpy as np
import psycopg
import pytest
from django.db import connection
from pgvector import HalfVector

from config.errors import InvalidInput
from kb.models import Chunk, Document
from kb.stores import scope, vectors
from kb.stores.planning import BY_ARRAY, fetch_all
from kb.stores.vectors import Leaf, VectorRow, add_vectors, remove_vectors, search_vectors, use_index


def directions(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 256)).astype(np.float32)


def search(shelf, query, limit=5, **more):
    more.setdefault("knowledge_bases", [shelf.id])
    return search_vectors(organization=shelf.organization, space=shelf.space, query=query, limit=limit, **more)


def count(where: str = "true") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM embedding_256 WHERE {where}")
        return cursor.fetchone()[0]


def test_finds_the_nearest_first_with_their_cosine(shelf):
    chunks, given = shelf.add_document(20), directions(20)
    shelf.add_vectors(chunks, given)
    found = search(shelf, given[7])
    cosines = given @ given[7] / (np.linalg.norm(given, axis=1) * np.linalg.norm(given[7]))
    order = np.argsort(-cosines)[:5]
    assert [chunk for chunk, _ in found.rows] == [chunks[i] for i in order]
    assert [similarity for _, similarity in found.rows] == pytest.approx(cosines[order], abs=2e-3)
    assert (found.exact, found.plan) == (True, "exact")


def test_takes_vectors_in_every_form_they_come_in(shelf):
    chunks, given = shelf.add_document(3), directions(3)
    shelf.add_vectors(chunks, [given[0], HalfVector(given[1]), given[2].tolist()])
    for chunk, vector in zip(chunks, given, strict=True):
        assert search(shelf, vector, 1).rows[0][0] == chunk


def test_blocks_longer_than_one_copy(shelf, monkeypatch):
    monkeypatch.setattr(vectors, "_ROWS_A_BLOCK", 4)
    chunks, given = shelf.add_document(10), directions(10)
    shelf.add_vectors(chunks, given)
    assert count() == 10
    assert search(shelf, given[9], 1).rows[0][0] == chunks[9]


def test_a_second_vector_for_a_chunk_takes_the_place_of_the_first(shelf):
    chunks = shelf.add_document(1)
    first, second = directions(2)
    shelf.add_vectors(chunks, [first])
    shelf.add_vectors(chunks, [second])
    assert count() == 1
    assert search(shelf, second, 1).rows[0][1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("vector", "said"),
    [
        (np.zeros(255), "255"),
        (np.full(256, np.nan), "finite"),
        (np.full(256, 1e6), "half precision"),
        ("nonsense", "256 numbers"),
    ],
)
def test_a_vector_that_cannot_be_stored_is_refused_in_words(shelf, vector, said):
    chunks = shelf.add_document(1)
    with pytest.raises(InvalidInput, match=said):
        add_vectors(organization=shelf.organization, space=shelf.space, knowledge_base=shelf.id, rows=[VectorRow(chunks[0], vector)])
    with pytest.raises(InvalidInput, match=said):
        search(shelf, vector)
    assert count() == 0


def test_a_vector_without_direction_is_no_match(shelf):
    chunks = shelf.add_document(2)
    shelf.add_vectors(chunks, [np.zeros(256), np.ones(256)])
    assert [chunk for chunk, _ in search(shelf, np.ones(256)).rows] == chunks[1:]


def test_another_organization_finds_nothing_even_with_the_id(shelf, make_shelf):
    chunks, given = shelf.add_document(3), directions(3)
    shelf.add_vectors(chunks, given)
    other = make_shelf("Foreign")
    assert search(other, given[0], knowledge_bases=[shelf.id, other.id]).rows == []


def test_naming_documents_of_another_organization_finds_nothing(shelf, make_shelf, monkeypatch):
    """Named documents are not looked up again: exactly and by the index, the tenant of the vectors decides."""
    other, given = make_shelf("Foreign"), directions(3)
    shelf.add_vectors(shelf.add_document(3), given)
    other.add_vectors(other.add_document(3), given)
    chosen = scope.Scope(shelf.organization, [shelf.id, other.id], [other.documents[0].pk])
    vector = str(given[0].tolist())
    assert vectors._search_exactly(chosen, shelf.space, vector, 5) == []
    assert vectors._search_index(chosen, shelf.space, vector, 5) == []
    own = scope.Scope(other.organization, [shelf.id, other.id], [other.documents[0].pk])
    assert len(vectors._search_exactly(own, shelf.space, vector, 5)) == len(vectors._search_index(own, shelf.space, vector, 5)) == 3


def test_settings_of_one_statement_end_with_it(db):
    def setting() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW enable_seqscan")
            return cursor.fetchone()[0]

    assert fetch_all("SELECT current_setting('enable_seqscan'), %s", [1], BY_ARRAY) == [("off", 1)]
    assert setting() == "on"


def test_several_knowledge_bases_give_one_list(shelf, make_shelf):
    other = make_shelf("Second", shelf.knowledge_base.organization)
    given = directions(6)
    mine, theirs = shelf.add_document(3), other.add_document(3)
    shelf.add_vectors(mine, given[:3])
    other.add_vectors(theirs, given[3:])
    found = search(shelf, given[4], 6, knowledge_bases=[shelf.id, other.id])
    assert found.rows[0][0] == theirs[1]
    assert {chunk for chunk, _ in found.rows} == {*mine, *theirs}


@pytest.mark.parametrize("named", [10_000, 1])
def test_filters_by_documents_and_sources(shelf, monkeypatch, named):
    """The same whether documents are few enough to be named or not."""
    monkeypatch.setattr(scope, "MOST_NAMED", named)
    given = directions(6)
    first, second = shelf.add_document(3), shelf.add_document(3)
    shelf.add_vectors(first + second, given)
    chosen = [shelf.documents[1].pk]
    assert {c for c, _ in search(shelf, given[0], documents=chosen).rows} == set(second)
    assert {c for c, _ in search(shelf, given[0], documents=Document.objects.filter(key="1")).rows} == set(second)
    assert {c for c, _ in search(shelf, given[0], 9, sources=[shelf.source.pk]).rows} == {*first, *second}
    assert search(shelf, given[0], sources=[]).rows == []
    assert search(shelf, given[0], documents=[]).rows == []


def test_deleting_chunks_removes_their_vectors_in_every_space(shelf):
    chunks = shelf.add_document(5)
    shelf.add_vectors(chunks, directions(5))
    Chunk.objects.filter(pk__in=chunks[:2]).delete()
    assert count() == 3
    shelf.documents[0].delete()
    assert count() == 0


def test_removes_a_knowledge_base_from_a_space_in_batches(shelf, make_shelf):
    other = make_shelf("Second", shelf.knowledge_base.organization)
    for each in (shelf, other):
        each.add_vectors(each.add_document(5), directions(5))

    def remove(who=shelf):
        return remove_vectors(organization=who.organization, space=shelf.space, knowledge_base=shelf.id, batch=2)

    assert remove(make_shelf("Foreign")) == 0
    assert [remove(), remove(), remove(), remove()] == [2, 2, 1, 0]
    assert count() == 5
    with connection.cursor() as cursor:
        cursor.execute("SELECT kb FROM embedding_use")
        assert cursor.fetchall() == [(other.id,)]


@pytest.mark.parametrize(
    ("in_scope", "leaf", "limit", "expected"),
    [
        (20_001, Leaf(20_001, True), 10, True),
        (50_000, Leaf(50_000, False), 10, False),  # no index yet
        (30_000, Leaf(30_000_000, True), 10, True),  # 10,000 scanned for 10: just within
        (30_000, Leaf(30_100_000, True), 10, False),  # the scan would end short
        (100_001, Leaf(200_000_000, True), 10, True),  # too many to scan exactly: try, exact if short
        (50_000, Leaf(0, True), 10, True),  # never analysed
    ],
)
def test_chooses_between_exact_and_index(in_scope, leaf, limit, expected):
    assert use_index(in_scope, limit=limit, leaves=[leaf]) is expected


@pytest.mark.parametrize("binding", ["client", "server"])
def test_a_search_opens_the_leaves_of_its_knowledge_bases_only(shelf, binding):
    """Parameters that reach the planner as values prune; a generic plan of a prepared statement would open every partition."""
    statement = "EXPLAIN SELECT chunk FROM embedding_256 WHERE space = %s AND kb = ANY(%s) ORDER BY (vector <=> %s::halfvec) + 0 LIMIT 5"
    parameters = [shelf.space.pk, [shelf.id], str(np.ones(256).tolist())]
    connection.ensure_connection()
    make = psycopg.ClientCursor if binding == "client" else psycopg.Cursor
    with make(connection.connection) as cursor:
        plan = "\n".join(row[0] for row in cursor.execute(statement, parameters))
    assert len(re.findall(r"on embedding_256\S*", plan)) == 1, plan


def test_the_connection_prepares_nothing(shelf):
    connection.ensure_connection()
    assert connection.connection.prepare_threshold is None
