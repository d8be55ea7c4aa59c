"""Explanations: what they say of hits, of candidates that are none, of documents that were expected, and what they keep to themselves."""

import re
from uuid import uuid4

import pytest

from kb import access, versioning
from kb.access import actor_for_user
from kb.models import Document, Source
from retrieval.explanation import Explanation
from retrieval.models import RetrievalTrace
from retrieval.requests import SearchRequest
from retrieval.search import search

pytestmark = pytest.mark.django_db


def explained(actor, query: str, **values) -> tuple[object, Explanation]:
    answer = search(actor, SearchRequest(query=query, explain=True, **values))
    return answer, Explanation.model_validate(answer.explanation)


def fates(explanation: Explanation) -> dict[str, str]:
    return {one.title: one.verdict for one in explanation.dropped_candidates}


def test_the_arithmetic_of_a_hit_is_the_score(actor, library) -> None:
    library.add("boiler cellar", title="Both")
    library.add("boiler attic roof", title="One")
    library.add("garden", title="None")
    answer, told = explained(actor, "boiler cellar")
    assert [one.title for one in told.hits] == [hit.document.title for hit in answer.hits]
    for hit, one in zip(answer.hits, told.hits, strict=True):
        parts = one.fusion
        assert parts is not None
        value = (parts.vector_part + parts.keyword_weight * parts.keyword_part) / (1 + parts.keyword_weight)
        assert value == pytest.approx(hit.scores.fused)
        assert re.search(r"[\d.]+$", parts.arithmetic).group() == f"{hit.score:.3f}"
        assert one.scores == hit.scores
    assert told.hits[0].matched_terms == ["boiler", "cellar"]
    assert (told.hits[0].threshold.score, told.hits[0].threshold.reached, told.hits[0].place) == ("vector", True, 1)


def test_terms_and_plans_are_those_of_the_search(actor, library) -> None:
    library.add("boiler cellar")
    library.add("boiler attic")
    _, told = explained(actor, "the boiler cellars", mode="hybrid")
    assert {term.term: term.frequency for term in told.terms} == {"boiler": 2, "cellar": 1}
    assert told.terms[0].term == "cellar"  # the rarest first
    assert told.terms[0].idf == pytest.approx(0.6931, abs=1e-4)  # ln(1 + (2 - 1 + .5) / (1 + .5))
    vectors, words = told.sides
    assert (vectors.side, vectors.plan, vectors.in_scope, vectors.exact_up_to, vectors.ef_search) == ("vectors", "exact", 2, 20_000, None)
    assert (vectors.embedding_model, vectors.depth, vectors.found) == ("hashing", 64, 2)
    assert (words.side, words.plan, words.in_scope, words.found) == ("words", "exact", 2, 2)
    filters = {"type": "eq", "key": "title", "value": "Document 0"}
    _, narrowed = explained(actor, "boiler", filters=filters)
    assert [(side.in_scope, side.exact_up_to) for side in narrowed.sides] == [(1, 5_000), (1, 20_000)]


def test_why_candidates_are_no_hits(actor, make_library) -> None:
    library = make_library("Strict", max_results=1, mode="keyword", min_score={"keyword": 0.3})
    library.add("boiler cellar", title="Hit")
    library.add("boiler cellar damp floor", title="Second")
    library.add("boiler attic roof garden fence tree house", title="Far")
    answer, told = explained(actor, "boiler cellar")
    assert [hit.document.title for hit in answer.hits] == ["Hit"]
    assert fates(told) == {"Second": "max_results", "Far": "below_min_score"}
    far = told.dropped_candidates[-1]
    assert far.why == f"Its keyword score {far.scores.keyword:.3f} is below the lowest, 0.3."
    assert (far.threshold.reached, far.threshold.least) == (False, 0.3)
    assert told.dropped.below_min_score == 1


def test_exclusions_phrases_neighbours_and_limits_are_told(actor, make_library) -> None:
    library = make_library("Wordy", neighbours=1)
    library.add("the red boiler stands here", title="Red")
    library.add("the boiler that is red", title="Apart")
    library.add("the red boiler rusts", title="Rust")
    _, told = explained(actor, '"red boiler" -rusts')
    assert fates(told) == {"Apart": "without_phrase", "Rust": "excluded"} or fates(told) == {"Apart": "without_phrase"}
    other = make_library("Chunks", neighbours=1)
    other.add("garden one", "garden two", title="Joined")
    for number in range(3):
        other.add(f"garden with trees number {number}", title=f"More {number}")
    _, told = explained(actor, "garden", knowledge_bases=[other.id], max_results=2)
    verdicts = {one.verdict for one in told.dropped_candidates}
    assert verdicts <= {"joined", "outranked", "max_results", "duplicate"}
    assert verdicts & {"max_results", "outranked"}


def test_an_identifier_passes_without_being_near(actor, make_library) -> None:
    library = make_library("Codes", min_score={"vector": 0.95})
    library.add("ERR_CONN_RESET means that the line was cut somewhere between here and there", title="Code")
    _, told = explained(actor, "ERR_CONN_RESET")
    (hit,) = told.hits
    assert hit.why == "It holds every identifier and quoted phrase of the question, so it need not be near in meaning."
    assert (hit.threshold.reached, hit.fusion.keyword_weight >= 1) == (False, True)


def test_conditions_are_told_one_by_one(actor, library) -> None:
    library.add("boiler cellar", title="New", metadata={"year": 2024, "tags": ["heat"]})
    old = library.add("boiler cellar", title="Old", metadata={"year": 1999})
    filters = {
        "type": "and",
        "filters": [
            {"type": "gte", "key": "year", "value": 2000},
            {"type": "not", "filter": {"type": "eq", "key": "language", "value": "de"}},
        ],
    }
    _, told = explained(actor, "boiler", filters=filters, explain_documents=[str(old.id)])
    assert [(one.path, one.key, one.holds) for one in told.hits[0].conditions] == [
        ("filters.filters[0]", "year", True),
        ("filters.filters[1].filter", "language", False),
    ]
    (document,) = told.documents
    assert (document.verdict, [one.holds for one in document.conditions]) == ("filtered", [False, False])
    assert "year gte 2000" in document.why
    assert document.best.scores.keyword > 0


def test_conditions_are_compared_as_the_search_compares(actor, library) -> None:
    """By the types that the knowledge base declares: a year that is stored as text is a number there."""
    knowledge_base = library.knowledge_base
    document = versioning.read(knowledge_base).document | {"metadata": {"year": "number"}}
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    text = library.add("boiler cellar", title="Text", metadata={"year": "2024"})
    old = library.add("boiler cellar", title="Old", metadata={"year": "1999"})
    filters = {"type": "gte", "key": "year", "value": 2000}
    answer, told = explained(actor, "boiler", filters=filters, explain_documents=[str(text.id), str(old.id)])
    assert [hit.document.title for hit in answer.hits] == ["Text"]
    assert [(one.verdict, one.conditions[0].holds) for one in told.documents] == [("hit", True), ("filtered", False)]


def test_where_an_expected_document_stands(actor, make_library) -> None:
    library, other = make_library("Here", max_results=1), make_library("There")
    top = library.add("boiler cellar", title="Top")
    second = library.add("boiler attic", title="Second")
    unlike = library.add("garden", title="Unlike")
    elsewhere = other.add("boiler cellar", title="Elsewhere")
    empty = library.add(title="Empty", last_error="The file is encrypted.")
    gone = library.add("fence", title="Gone")
    Document.objects.filter(id=gone.id).update(tombstoned_at=gone.last_ingested_at)
    wanted = [top, second, unlike, elsewhere, empty, gone]
    ids = [*(str(one.id) for one in wanted), str(uuid4())]
    _, told = explained(actor, "boiler cellar", knowledge_bases=[library.id], mode="keyword", explain_documents=ids)
    verdicts = {one.title: one.verdict for one in told.documents}
    assert verdicts == {
        "Top": "hit", "Second": "max_results", "Unlike": "not_found", "Elsewhere": "other_knowledge_base",
        "Empty": "not_published", "Gone": "removed", None: "absent",
    }  # fmt: skip
    by_title = {one.title: one for one in told.documents}
    assert by_title["Top"].hits == [1]
    assert (by_title["Second"].best.place, by_title["Second"].best.scores.keyword_rank) == (2, 2)
    assert "The file is encrypted." in by_title["Empty"].why
    assert by_title["Unlike"].why == "None of its passages holds a word of the question."
    Source.objects.filter(id=library.source.id).update(state=Source.State.REMOVING)
    _, told = explained(actor, "boiler", knowledge_bases=[library.id], explain_documents=[str(top.id)])
    assert told.documents[0].verdict == "removed"


def test_a_document_below_the_lowest_score_says_by_how_much(actor, make_library) -> None:
    library = make_library("Strict", mode="vector", min_score={"vector": 0.9})
    far = library.add("boiler attic roof garden", title="Far")
    answer, told = explained(actor, "boiler", explain_documents=[str(far.id)])
    assert answer.reason == "below_min_score"
    (document,) = told.documents
    assert (document.verdict, document.best.threshold.least, document.best.scores.vector_rank) == ("below_min_score", 0.9, 1)


def test_private_documents_of_others_are_never_named(actor, library, bob, carol) -> None:
    secret = library.add("boiler cellar secret", title="Secret plan", visibility="private", owner=actor.user)
    library.add("boiler attic", title="Open")
    ids = [str(secret.id), str(uuid4())]
    for other in (actor_for_user(bob), actor_for_user(carol)):
        answer, told = explained(other, "boiler cellar", explain_documents=ids)
        hidden, absent = told.documents
        assert hidden.model_dump(exclude={"document_id"}) == absent.model_dump(exclude={"document_id"})
        assert "Secret" not in told.model_dump_json()
        assert told.candidates == 1
        assert not RetrievalTrace.objects.get(id=answer.trace_id).private


def test_a_trace_whose_explanation_names_a_private_document_is_its_asker_s(actor, make_library, bob) -> None:
    library = make_library("Mixed", mode="keyword", max_results=1)
    library.add("boiler cellar", title="Open")
    own = library.add("boiler cellar and much else besides", title="My own", visibility="private", owner=actor.user)
    answer, told = explained(actor, "boiler cellar")
    assert [hit.document.title for hit in answer.hits] == ["Open"]
    assert fates(told) == {"My own": "max_results"}
    trace = RetrievalTrace.objects.get(id=answer.trace_id)
    assert trace.private
    plain = search(actor, SearchRequest(query="boiler cellar"))
    assert not RetrievalTrace.objects.get(id=plain.trace_id).private
    _, told = explained(actor, "attic", explain_documents=[str(own.id)])
    assert RetrievalTrace.objects.latest("created_at").private
    assert not access.rows(actor_for_user(bob), Document).filter(id=own.id).exists()


def test_nothing_searched_is_explained_too(organization, actor, library, bob) -> None:
    from kb import services

    key, _ = services.create_api_key(organization, name="key", knowledge_base_ids=[library.knowledge_base.id], role="viewer")
    nobody = access.actor_for_key(key)
    library.knowledge_base.state = "deleting"
    library.knowledge_base.save()
    answer, told = explained(nobody, "boiler")
    assert (answer.reason, told.hits, told.sides) == ("no_matching_knowledge_base", [], [])
