"""A search whose candidates a rerank service reads once more; where it fails, the order that was found stands."""

import re
from collections.abc import Iterator

import pytest
from django.utils import timezone

from config.errors import InvalidInput
from kb import reranking, services, versioning
from kb.access import actor_for_user
from kb.models import Chunk, Document, Reranker, Secret
from kb.schemas import dump, load_stored
from retrieval.candidates import Candidate
from retrieval.hits import Scores
from retrieval.hydration import Found, keep_current
from retrieval.models import RetrievalTrace
from retrieval.query import make_query
from retrieval.requests import CompareRequest, SearchRequest, Variant
from retrieval.search import search
from retrieval.services import compare_searches
from tests.servers.rerank_server import KEY, Answer, RerankServer

TEXTS = ["boiler boiler boiler", "the boiler of the house", "a boiler in the cellar", "a stove and its boiler in the attic"]


@pytest.fixture
def server(db) -> Iterator[RerankServer]:
    with RerankServer() as running:
        yield running


@pytest.fixture
def reranker(server) -> Reranker:
    """The installation's, so that its address may be a private one."""
    services.set_secret(organization=None, name="VENDOR", value=KEY)
    made = Reranker(name="best", provider="cohere", model="m", endpoint=server.endpoint("cohere"), credential="VENDOR", timeout=2.0)
    made.save()
    return made


@pytest.fixture
def filled(library):
    for number, text in enumerate(TEXTS):
        library.add(text, title=f"Text {number}", chunk_values=[{"heading_path": ["Heating"]}])
    return library


def ask(actor, query: str, **values):
    return search(actor, SearchRequest(query=query, **values))


def texts(answer) -> list[str]:
    return [hit.text for hit in answer.hits]


def name_reranker(actor, knowledge_base, **retrieval) -> None:
    document = dump(load_stored(knowledge_base.current.document))
    document["retrieval"] |= retrieval
    versioning.publish(knowledge_base, document=document, expected=knowledge_base.current.number, actor=actor)


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
def test_the_reranker_s_order_and_probabilities(actor, filled, server, reranker, mode):
    server.scores = {"attic": 0.9, "cellar": 0.6, "house": 0.2, "boiler boiler": 0.1}
    answer = ask(actor, "boiler", rerank="best", mode=mode)
    assert texts(answer) == TEXTS[::-1]
    assert [hit.score for hit in answer.hits] == [hit.scores.reranked for hit in answer.hits] == [0.9, 0.6, 0.2, 0.1]
    assert (answer.degraded, answer.reason, answer.notes) == (None, None, ())
    assert "Text 3 > Heating\n\na stove and its boiler in the attic" in server.requests[0]["body"]["documents"]
    trace = RetrievalTrace.objects.get(id=answer.trace_id)
    assert trace.hits[0]["scores"]["reranked"] == 0.9
    assert trace.settings["explanation"]["reranking"][0]["passages"] == 4
    assert trace.settings["knowledge_bases"][0]["rerank"] == "best"
    assert "reranking" in trace.timings_ms


def test_the_knowledge_base_names_it_and_a_request_may_say_none(actor, filled, server, reranker):
    name_reranker(actor, filled.knowledge_base, rerank="best", rerank_depth=2)
    answer = ask(actor, "boiler", max_results=1)
    assert len(server.requests[0]["body"]["documents"]) == 2
    assert answer.hits[0].scores.reranked is not None
    assert ask(actor, "boiler", rerank=None).hits[0].scores.reranked is None
    assert len(server.requests) == 1
    ask(actor, "boiler", rerank_depth=1, max_results=3)
    assert len(server.requests[1]["body"]["documents"]) == 3  # never fewer than are returned


def test_variants_that_leave_it_out_take_the_knowledge_base_s(actor, filled, server, reranker):
    name_reranker(actor, filled.knowledge_base, rerank="best")
    variants = [Variant(label="own"), Variant(label="none", rerank=None), Variant(label="named", rerank="best")]
    compared = compare_searches(actor, CompareRequest(query="boiler", variants=variants))
    assert [one.answer.hits[0].scores.reranked is not None for one in compared] == [True, False, True]


def test_below_the_lowest_probability(actor, filled, server, reranker):
    server.scores = {"attic": 0.9, "boiler": 0.1}
    assert texts(ask(actor, "boiler", rerank="best", min_score={"reranked": 0.5})) == [TEXTS[3]]
    empty = ask(actor, "boiler", rerank="best", min_score={"reranked": 0.95}, explain=True)
    assert (empty.hits, empty.reason, empty.explanation["dropped"]["below_min_score"]) == ((), "below_min_score", 4)


def test_what_is_named_to_the_letter_passes_whatever_the_reranker_says(actor, filled, server, reranker):
    filled.add("Error E-4711 stands in the log.", title="Log")
    server.scores = {"E-4711": 0.01, "boiler": 0.02}
    answer = ask(actor, "what is E-4711", rerank="best", min_score={"reranked": 0.5})
    assert texts(answer) == ["Error E-4711 stands in the log."]
    # In vector mode nothing is named to the letter.
    assert ask(actor, "what is E-4711", rerank="best", mode="vector", min_score={"reranked": 0.5}).reason == "below_min_score"


@pytest.mark.parametrize(
    ("scripted", "said"),
    [
        (Answer(delay=1.5), "did not answer within"),
        (Answer(status=429, retry_after=1), "limits the rate"),
        (Answer(status=500), "answered 500"),
        (Answer(status=401), "refuses|rejects"),
        (Answer(missing=1), "scored 3"),
        (Answer(shift=7), "not among them"),
        (Answer(not_a_number=True), "no number"),
        (Answer(body="<html>"), "rerank service"),
    ],
)
def test_a_reranker_that_fails_leaves_the_order_that_was_found(actor, filled, server, reranker, scripted, said):
    Reranker.objects.update(timeout=0.4)
    plain = ask(actor, "boiler in the cellar")
    server.answer_next(scripted)
    answer = ask(actor, "boiler in the cellar", rerank="best", min_score={"reranked": 0.99})
    assert [(hit.citation, hit.score) for hit in answer.hits] == [(hit.citation, hit.score) for hit in plain.hits]
    assert len(answer.hits) == 4
    assert (answer.degraded, answer.reason) == ("rerank_error", None)
    assert any("not reranked" in note for note in answer.notes)
    assert all(hit.scores.reranked is None for hit in answer.hits)
    trace = RetrievalTrace.objects.get(id=answer.trace_id)
    assert trace.degraded == "rerank_error"
    assert re.search(said, trace.error)
    assert trace.settings["explanation"]["reranking"][0]["error"]


def test_a_server_that_is_not_there(actor, filled, reranker):
    Reranker.objects.update(endpoint="http://127.0.0.1:9/v2")
    answer = ask(actor, "boiler", rerank="best")
    assert (len(answer.hits), answer.degraded) == (4, "rerank_error")


def test_a_secret_that_is_gone(actor, filled, reranker):
    Secret.objects.all().delete()
    answer = ask(actor, "boiler", rerank="best")
    assert (len(answer.hits), answer.degraded) == (4, "rerank_error")
    assert "There is no secret named 'VENDOR'" in answer.notes[0]


def test_names_that_are_not_registered(actor, filled, mallory, other_organization, reranker):
    with pytest.raises(InvalidInput, match="Registered: best"):
        ask(actor, "boiler", rerank="another")
    services.set_secret(organization=other_organization, name="OWN", value=KEY)
    theirs = {"name": "theirs", "provider": "cohere", "model": "m", "credential": "OWN"}
    reranking.register_reranker(actor_for_user(mallory), document=theirs)
    with pytest.raises(InvalidInput, match="Registered: best"):
        ask(actor, "boiler", rerank="theirs")
    name_reranker(actor, filled.knowledge_base, rerank="best")
    Reranker.objects.filter(name="best").delete()
    answer = ask(actor, "boiler")
    assert (len(answer.hits), answer.degraded) == (4, "rerank_error")
    assert "There is no reranker best any more" in answer.notes[0]


def test_an_organization_s_own_comes_before_the_installation_s(actor, filled, organization, server, reranker):
    own = Reranker.objects.create(organization=organization, name="best", provider="cohere", model="own", endpoint="http://127.0.0.1:9")
    answer = ask(actor, "boiler", rerank="best")
    assert (answer.degraded, server.requests) == ("rerank_error", [])
    own.delete()
    assert ask(actor, "boiler", rerank="best").degraded is None


def test_a_document_that_went_while_it_was_reranked_is_not_answered(actor, filled):
    """The service answers in its own time, so what stands is looked at once more."""
    query = make_query(actor, SearchRequest(query="boiler"))
    rows = list(Chunk.objects.order_by("id").values("id", "document_id"))
    pool = [Found(Candidate(row["id"], "hybrid", 0.5, Scores()), row, query.targets[0]) for row in rows]
    Document.objects.filter(pk=rows[1]["document_id"]).update(tombstoned_at=timezone.now())
    assert [hit.row["id"] for hit in keep_current(query, pool)] == [rows[0]["id"], rows[2]["id"], rows[3]["id"]]


def test_a_pasted_page_is_cut_for_the_reranker(actor, filled, server, reranker):
    answer = ask(actor, "boiler " * 2000, rerank="best")
    assert len(server.requests[0]["body"]["query"]) == 8_000
    assert any("8,000 characters" in note for note in answer.notes)


def test_two_knowledge_bases_one_of_them_reranked(actor, filled, make_library, server, reranker):
    other = make_library("Others", rerank="best")
    other.add("a boiler of others", title="Other")
    server.scores = {"of others": 0.99}
    answer = ask(actor, "boiler")
    assert len(server.requests[0]["body"]["documents"]) == 1
    assert {(hit.text, hit.scores.reranked) for hit in answer.hits} == {("a boiler of others", 0.99), *((text, None) for text in TEXTS)}
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
