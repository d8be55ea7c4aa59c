"""What becomes of a ranked list: variety, a cap per document, and equal texts of two documents as one hit that names both."""

import pytest

from kb.access import actor_for_user
from kb.models import Chunk, Document
from retrieval.fusion import Weights, for_query
from retrieval.models import RetrievalTrace
from retrieval.requests import SearchRequest
from retrieval.search import search

BOILER = "The boiler stands in the cellar and is serviced each autumn."


def ask(actor, query: str, **values):
    return search(actor, SearchRequest(query=query, **values))


def texts(answer) -> list[str]:
    return [hit.text for hit in answer.hits]


# --- equal texts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
def test_the_same_text_in_two_documents_is_one_hit_and_both_are_cited(actor, library, mode):
    first = library.add(BOILER, title="First")
    second = library.add(BOILER.replace(".", "!"), title="Second")
    library.add("The roof and its boiler are old.")
    answer = ask(actor, "boiler in the cellar", mode=mode)
    assert len(answer.hits) == 2
    hit = answer.hits[0]
    (twin,) = hit.also_in
    assert {hit.document.id, twin.document.id} == {first.pk, second.pk}
    cited = Chunk.objects.get(pk=twin.citation.removeprefix("c:"))
    assert cited.document_id == twin.document.id
    assert {hit.document.title, twin.document.title} == {"First", "Second"}
    trace = RetrievalTrace.objects.get(id=answer.trace_id)
    assert trace.hits[0]["also_in"] == [{"citation": twin.citation, "document_id": str(twin.document.id)}]
    assert [len(hit.also_in) for hit in ask(actor, "boiler in the cellar", mode=mode, collapse_duplicates=False).hits] == [0, 0, 0]


def test_deleting_one_leaves_the_other(actor, library):
    first, second = library.add(BOILER, title="First"), library.add(BOILER, title="Second")
    assert len(ask(actor, "boiler").hits) == 1
    for goes, stays in ((first, second),):
        Document.objects.filter(pk=goes.pk).delete()
        (hit,) = ask(actor, "boiler").hits
        assert (hit.document.id, hit.also_in) == (stays.pk, ())


def test_the_twin_of_the_last_hit_is_found_too(actor, library):
    for title in ("First", "Second", "Third"):
        library.add(BOILER, title=title)
    (hit,) = ask(actor, "boiler", max_results=1).hits
    assert {twin.document.title for twin in hit.also_in} | {hit.document.title} == {"First", "Second", "Third"}


def test_room_that_twins_leave_is_filled(actor, library):
    for number in range(30):
        library.add(BOILER, title=f"Copy {number}")
    library.add("A cellar without a boiler.")
    answer = ask(actor, BOILER, max_results=2)
    assert len(answer.hits) == 2
    assert len(answer.hits[0].also_in) == 29


def test_numbers_keep_texts_apart(actor, library):
    for number in range(3):
        library.add(f"{BOILER} It has the number {number}.")
    assert len(ask(actor, "boiler").hits) == 3


def test_equal_chunks_of_one_document_are_no_twins(actor, library):
    library.add(BOILER, BOILER)
    other = library.add(BOILER, BOILER)
    first, second = ask(actor, "boiler", neighbours=0).hits
    assert first.document.id == second.document.id
    assert [twin.document.id for hit in (first, second) for twin in hit.also_in] in ([other.pk], [library.documents[0].pk])


def test_a_private_document_of_somebody_else_is_no_twin(actor, library, bob, carol):
    library.add(BOILER, title="Open")
    library.add(BOILER, title="Bob's", visibility="private", owner=bob)
    for asker in (actor, actor_for_user(carol)):
        (hit,) = ask(asker, "boiler").hits
        assert (hit.document.title, hit.also_in) == ("Open", ())
    (hit,) = ask(actor_for_user(bob), "boiler").hits
    assert len(hit.also_in) == 1
    assert RetrievalTrace.objects.order_by("created_at").last().private  # a private document is named by it


def test_two_knowledge_bases(actor, library, make_library):
    library.add(BOILER, title="First")
    make_library("Others").add(BOILER, title="Second")
    (hit,) = ask(actor, "boiler").hits
    assert len(hit.also_in) == 1
    assert hit.also_in[0].document.knowledge_base_id != hit.document.knowledge_base_id


# --- a cap per document -----------------------------------------------------------------------------------------------------


def test_at_most_so_many_hits_of_a_document(actor, library, make_library):
    library.add(*[f"Boiler boiler boiler, part {number}." for number in range(90)], title="Long")
    library.add("A house has a cellar, a roof and somewhere a boiler.", title="Short")
    assert {hit.document.title for hit in ask(actor, "boiler", max_results=5).hits} == {"Long"}
    answer = ask(actor, "boiler", max_results=5, max_per_document=2)
    assert [hit.document.title for hit in answer.hits] == ["Long", "Long", "Short"]
    capped = make_library("Capped", max_per_document=1)
    capped.add("A boiler here.", "A boiler there.")
    assert len(ask(actor, "boiler", knowledge_bases=[capped.id]).hits) == 1
    assert len(ask(actor, "boiler", knowledge_bases=[capped.id], max_per_document=0).hits) == 2


# --- variety ----------------------------------------------------------------------------------------------------------------

ALIKE = [f"The boiler stands in the cellar beside the {place}." for place in ("door", "wall", "stairs", "window")]
OTHER = "A boiler is cleaned by the firm in autumn."


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
def test_variety_puts_back_what_repeats(actor, library, mode):
    for text in [*ALIKE, OTHER]:
        library.add(text)
    question = "boiler in the cellar"
    plain = ask(actor, question, mode=mode, max_results=2)
    assert OTHER not in texts(plain)
    varied = ask(actor, question, mode=mode, max_results=2, diversity=0.8)
    assert texts(varied) == [texts(plain)[0], OTHER]
    assert texts(ask(actor, question, mode=mode, max_results=2, diversity=0)) == texts(plain)


def test_variety_is_a_setting_of_the_knowledge_base(actor, make_library):
    library = make_library("Varied", diversity=0.8)
    for text in [*ALIKE, OTHER]:
        library.add(text)
    assert OTHER in texts(ask(actor, "boiler in the cellar", max_results=2))
    assert OTHER not in texts(ask(actor, "boiler in the cellar", max_results=2, diversity=0))


# --- weights ----------------------------------------------------------------------------------------------------------------


def test_weights_of_a_knowledge_base_and_of_a_request(actor, make_library):
    library = make_library("Weighed", fusion={"keyword_weight": 0})
    for text in [*ALIKE, OTHER]:
        library.add(text)
    alone = ask(actor, "boiler in the cellar", max_results=5)
    assert [hit.score for hit in alone.hits] == pytest.approx([hit.scores.vector for hit in alone.hits])
    weighed = ask(actor, "boiler in the cellar", max_results=5, fusion={"keyword_weight": 1, "vector_floor": 0.2})
    best = max(hit.scores.keyword_raw for hit in weighed.hits)
    near = [min(max((hit.scores.vector - 0.2) / 0.8, 0), 1) for hit in weighed.hits]
    weight = for_query(
        Weights(1, 0.2), [hit.scores.vector for hit in weighed.hits], [hit.scores.keyword_raw for hit in weighed.hits]
    ).keyword
    for hit, cosine in zip(weighed.hits, near, strict=True):
        assert hit.score == pytest.approx((cosine + weight * hit.scores.keyword_raw / best) / (1 + weight))


def test_knowledge_bases_of_different_weights_stand_in_one_list(actor, make_library):
    plain, weighed = make_library("Plain"), make_library("Weighed", fusion={"keyword_weight": 1})
    for library in (plain, weighed):
        for text in [*ALIKE, OTHER]:
            library.add(text)
    answer = ask(actor, "boiler in the cellar", max_results=10, collapse_duplicates=False)
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
    assert {str(hit.document.knowledge_base_id) for hit in answer.hits} == {plain.id, weighed.id}
