"""What every store must do, whatever it is."""

import numpy as np
import pytest

from config.errors import InvalidInput
from kb.models import EmbeddingSpace
from kb.stores.base import Place, Point, StoreRefused
from kb.stores.opening import store_kinds
from tests.kb.stores.contract.ground import DIMENSION, unit


def test_the_nearest_come_first_with_their_cosines(filled):
    _, (near, middle, far, opposite) = filled.add(unit(1, 0.1), unit(1, 1), unit(0, 1), unit(-1))
    rows = filled.search(unit(1))
    assert [chunk for chunk, _ in rows] == [near, middle, far, opposite]
    expected = [float(filled.vectors[chunk] @ unit(1)) for chunk, _ in rows]
    assert [cosine for _, cosine in rows] == pytest.approx(expected, abs=2e-3)
    assert filled.found(unit(1), limit=2) == [near, middle]


def test_lengths_of_vectors_do_not_count(filled):
    _, (long, short) = filled.add(unit(1, 1) * 25, unit(1, 0.2) * 0.04)
    rows = filled.search(unit(1) * 7)
    assert [chunk for chunk, _ in rows] == [short, long]
    assert [cosine for _, cosine in rows] == pytest.approx([float(unit(1, 0.2)[0]), 2**-0.5], abs=2e-3)


def test_a_replaced_document_answers_with_its_new_chunks_alone(filled):
    document, old = filled.add(unit(1), unit(1, 0.1))
    new = filled.shelf.add_document(2)
    filled.put(document, dict(zip(new, [unit(1), unit(1, 0.2)], strict=True)))
    assert set(filled.found(unit(1))) == {*old, *new}  # first in, then out: at no moment is there nothing
    filled.store.remove(filled.place, old)
    assert filled.found(unit(1)) == new
    assert filled.listed() == sorted(new)


def test_adding_again_changes_nothing_and_adding_anew_replaces(filled):
    document, (one, two) = filled.add(unit(1), unit(0, 1))
    before = filled.search(unit(1))
    filled.put(document, dict(filled.vectors))
    assert dict(filled.search(unit(1))) == pytest.approx(dict(before), abs=1e-5)
    filled.put(document, {one: unit(0, 0, 1)})
    assert dict(filled.search(unit(1)))[one] == pytest.approx(0, abs=2e-3)
    assert filled.listed() == [one, two]


def test_what_is_absent_can_be_removed(filled):
    filled.store.remove(filled.place, [1, 2, 3])  # of a space to which nothing may have been added ever
    _, (one,) = filled.add(unit(1))
    filled.store.remove(filled.place, [one + 1_000_000])
    filled.store.remove(filled.place, [])
    assert filled.found(unit(1)) == [one]
    filled.store.remove(filled.place, [one, one + 1_000_000])
    filled.store.remove(filled.place, [one])
    assert filled.found(unit(1)) == []


def test_a_space_that_nothing_was_added_to(peer, store, filled, make_filled):
    nowhere = EmbeddingSpace(pk=filled.place.space.pk + 77, dimension=DIMENSION)
    place = Place(filled.place.organization, filled.place.knowledge_base, nowhere)
    store.remove(place, [1])
    store.remove(place, None)
    if store_kinds().load(peer.spec.type).in_transaction:
        assert filled.search(unit(1), space=nowhere) == []
    else:
        with pytest.raises(StoreRefused):
            filled.search(unit(1), space=nowhere)
    filled.add(unit(1))
    assert store.chunks_after(place, 0, 10) == []
    assert make_filled("Nothing in it").search(unit(1)) == []


def test_a_search_among_documents(filled):
    first, (one, _) = filled.add(unit(1), unit(1, 0.1))
    second, (other,) = filled.add(unit(1, 0.05))
    filled.add(unit(1, 0.01))
    assert filled.found(unit(1), documents=[second.pk]) == [other]
    assert set(filled.found(unit(1), documents=[first.pk, second.pk], limit=2)) == {one, other}
    assert filled.found(unit(1), documents=[]) == []


def test_a_search_among_a_thousand_documents(filled):
    many = [filled.add(unit(1, 0.001 * number)) for number in range(40)]
    absent = [filled.place.knowledge_base] * 900
    wanted = [document.pk for document, _ in many[20:]]
    assert filled.found(unit(1), limit=3, documents=[*absent, *wanted]) == [chunks[0] for _, chunks in many[20:23]]


def test_the_cosines_of_some_chunks(filled):
    _, (one, two, three) = filled.add(unit(1), unit(1, 1), unit(0, 1))
    assert dict(filled.search(unit(1), limit=10, chunks=[two, three, three + 1_000_000])) == pytest.approx(
        {two: 2**-0.5, three: 0}, abs=2e-3
    )
    assert filled.search(unit(1), chunks=[]) == []
    assert one not in dict(filled.search(unit(1), chunks=[two]))


def test_organizations_and_knowledge_bases_are_kept_apart(filled, make_filled):
    neighbour = make_filled("Another of the same", filled.shelf.knowledge_base.organization)
    stranger = make_filled("Somebody else's")
    _, (own,) = filled.add(unit(1))
    _, (near,) = neighbour.add(unit(1))
    _, (strange,) = stranger.add(unit(1))
    assert filled.found(unit(1)) == [own]
    assert set(filled.found(unit(1), knowledge_bases=[filled.shelf.id, neighbour.shelf.id])) == {own, near}
    both = [filled.shelf.id, stranger.shelf.id]
    assert filled.found(unit(1), knowledge_bases=both) == [own]  # the knowledge base is not the organization's
    assert filled.found(unit(1), chunks=[own, near, strange]) == [own]
    assert filled.search(unit(1), organization=stranger.shelf.organization) == []
    # Points of others cannot be removed, neither by their ids nor with the whole.
    filled.store.remove(filled.place, [near, strange])
    filled.store.remove(Place(stranger.shelf.organization, filled.shelf.id, filled.place.space), [own])
    assert (filled.found(unit(1)), neighbour.found(unit(1)), stranger.found(unit(1))) == ([own], [near], [strange])
    filled.store.remove(filled.place, None)
    assert (filled.found(unit(1)), neighbour.found(unit(1)), stranger.found(unit(1))) == ([], [near], [strange])
    assert (filled.listed(), neighbour.listed(), stranger.listed()) == ([], [near], [strange])


def test_vectors_of_another_length_are_refused(filled):
    _, (one,) = filled.add(unit(1))
    with pytest.raises(InvalidInput, match="256 dimensions, these have 3"):
        filled.store.add(filled.place, [Point(one, filled.shelf.documents[0].pk, np.ones(3))])
    broken = unit(1)
    broken[3] = np.nan
    with pytest.raises(InvalidInput, match="not finite"):
        filled.store.add(filled.place, [Point(one, filled.shelf.documents[0].pk, broken)])
    assert filled.found(unit(1)) == [one]


def test_a_vector_of_zeros_is_never_found(filled):
    _, (one, _) = filled.add(unit(1), np.zeros(DIMENSION))
    assert filled.found(unit(1)) == [one]


def test_thousands_of_points(filled):
    generator = np.random.default_rng(7)
    vectors = generator.standard_normal((3000, DIMENSION)).astype(np.float32)
    _, chunks = filled.add(*vectors)
    question = generator.standard_normal(DIMENSION).astype(np.float32)
    cosines = vectors @ question / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(question))
    best = [chunks[index] for index in np.argsort(-cosines)[:20]]
    answer = filled.query(question, limit=20)
    hit = len(set(best) & {chunk for chunk, _ in answer.rows})
    assert len(answer.rows) == 20
    assert hit >= (20 if answer.exact else 18)
    assert len(filled.found(question, limit=2500)) == 2500
    assert filled.store.chunks_after(filled.place, chunks[99], 1000) == chunks[100:1100]
    filled.store.remove(filled.place, chunks[:2900])
    assert sorted(filled.found(question, limit=3000)) == chunks[2900:]
    assert filled.listed() == chunks[2900:]
