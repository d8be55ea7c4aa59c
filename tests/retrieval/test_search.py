from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.errors import NotFound
from kb.access import actor_for_user
from kb.models import Chunk, KnowledgeBase, Source, Usage
from kb.models.derived import EmbeddingUse
from retrieval.models import RetrievalTrace
from retrieval.requests import SearchRequest
from retrieval.search import RetrievalFailed, search

BOILER = "The boiler stands in the cellar and is serviced each autumn."
ROOF = "The roof was covered with slate in 1931 and leaks near the chimney."
CAT = "The cat of the caretaker sleeps on the boiler."


def ask(actor, query: str, **values):
    return search(actor, SearchRequest(query=query, **values))


def texts(answer) -> list[str]:
    return [hit.text for hit in answer.hits]


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
def test_each_mode_finds_and_names_its_scores(actor, library, mode) -> None:
    library.add(BOILER, title="Heating", url="https://example.org/heating", metadata={"year": 2020})
    library.add(ROOF)
    answer = ask(actor, "Where does the boiler stand in the cellar?", mode=mode, max_results=1)
    (hit,) = answer.hits
    assert (hit.text, hit.document.title, hit.document.url, dict(hit.metadata)) == (
        BOILER, "Heating", "https://example.org/heating", {"year": 2020},
    )  # fmt: skip
    named = {"vector": hit.scores.vector, "keyword": hit.scores.keyword, "hybrid": hit.scores.fused}
    assert hit.score == named[mode]
    assert answer.reason is None
    assert answer.degraded is None
    if mode != "keyword":
        assert 0 < hit.scores.vector <= 1
    if mode != "vector":
        assert hit.scores.keyword_raw > hit.scores.keyword > 0
    trace = RetrievalTrace.objects.get(id=answer.trace_id)
    assert trace.hits[0]["scores"]["vector"] == hit.scores.vector
    assert trace.mode == mode
    assert trace.versions == {library.id: 1}
    assert trace.requested_by == actor.user
    assert "total" in trace.timings_ms


def test_a_question_is_on_the_account_of_what_it_searches(actor, library) -> None:
    library.add(BOILER)
    ask(actor, "Where does the boiler stand?", mode="vector")
    ask(actor, "Where does the boiler stand?", mode="keyword")  # embeds nothing
    counted = Usage.objects.get()
    assert (str(counted.knowledge_base_id), counted.purpose, counted.texts, counted.tokens) == (library.id, "questions", 1, 5)


def test_how_hard_an_index_looks_is_asked_or_set(actor, make_library) -> None:
    library = make_library("Set", ef_search=300)
    library.add(BOILER)
    assert ask(actor, "boiler").searched[0].ef_search == 300
    assert ask(actor, "boiler", ef_search=40).searched[0].ef_search == 40


def test_few_statements(actor, library) -> None:
    for number in range(30):
        library.add(f"{BOILER} Number {number}.", f"{ROOF} Number {number}.")
    ask(actor, "boiler in the cellar")
    with CaptureQueriesContext(connection) as captured:
        answer = ask(actor, "boiler in the cellar", neighbours=1, max_results=10)
    assert len(answer.hits) == 10
    statements = [query["sql"] for query in captured if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert len(statements) <= 12, "\n".join(statement[:100] for statement in statements)


def test_a_document_that_does_not_stand_is_not_found(actor, library) -> None:
    for number in range(70):
        document = library.add(f"{BOILER} {number}")
        document.tombstoned_at = timezone.now()
        document.save()
    library.add("A cellar without anything else in it.")
    # 70 better ones were taken down: it is looked for behind them.
    assert texts(ask(actor, BOILER, max_results=1)) == ["A cellar without anything else in it."]
    library.source.state = Source.State.REMOVING
    library.source.save()
    assert ask(actor, BOILER).reason == "no_hits"


def test_reasons(actor, library) -> None:
    assert ask(actor, "boiler").reason == "knowledge_base_empty"
    library.add()
    assert ask(actor, "boiler").reason == "nothing_ingested_yet"
    library.add(BOILER)
    assert ask(actor, "zebra", mode="keyword").reason == "no_hits"
    assert ask(actor, "zebra", mode="vector", min_score=0.99).reason == "below_min_score"
    assert ask(actor, "boiler", knowledge_bases=[]).reason == "no_matching_knowledge_base"
    assert RetrievalTrace.objects.count() == 5
    assert [trace.reason for trace in RetrievalTrace.objects.order_by("created_at")][-1] == "no_matching_knowledge_base"


def test_absent_and_foreign_knowledge_bases_look_the_same(actor, library, mallory) -> None:
    library.add(BOILER)
    stranger = actor_for_user(mallory)
    assert ask(stranger, "boiler").reason == "no_matching_knowledge_base"
    messages = set()
    for name in (library.id, str(uuid4()), "handbooks"):
        with pytest.raises(NotFound) as caught:
            ask(stranger, "boiler", knowledge_bases=[name])
        messages.add(caught.value.message)
    assert len(messages) == 1


def test_exclusions_and_phrases_are_compared_with_the_text(actor, library) -> None:
    library.add(BOILER)
    library.add(CAT)
    assert texts(ask(actor, "boiler -cat")) == [BOILER]
    assert texts(ask(actor, 'boiler -"caretaker sleeps"')) == [BOILER]
    assert texts(ask(actor, '"sleeps on the boiler"')) == [CAT]
    assert ask(actor, '"boiler the on"', mode="keyword").reason == "no_hits"
    # Where meaning counts too, the nearest are better than nothing, and it is said.
    nearest = ask(actor, '"boiler the on"')
    assert len(nearest.hits) == 2
    assert "quoted phrase" in nearest.notes[0]
    pasted = f"{CAT} {BOILER} {ROOF} " + " ".join(f"other{n}" for n in range(20)) + ' with one "quoted phrase" on a pump'
    assert len(ask(actor, pasted, mode="keyword").hits) == 2


def test_a_beginning_finds_its_words(actor, library) -> None:
    library.add("The organizational chart hangs in the hall.")
    library.add(ROOF)
    assert texts(ask(actor, "organizat*", mode="keyword")) == ["The organizational chart hangs in the hall."]
    assert "chart" not in str(ask(actor, "organizat*", mode="keyword", explain=True).explanation), "words of others are not told"


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
@pytest.mark.parametrize(
    "typed",
    [
        *("What's your password policies?", "a & | !", "':*", "*", "-", '"', "( ) <-> \\ '", "\u0000a b", "😀"),
        *("password " * 6250, "'" * 50_000),
    ],
    ids=lambda typed: repr(typed[:30]),
)
def test_nothing_typed_is_an_error(actor, library, mode, typed) -> None:
    wanted = "Password policies: a password has twelve characters."
    library.add(wanted)
    library.add(ROOF)
    answer = ask(actor, typed, mode=mode)
    assert answer.degraded is None
    if "password" in typed:
        assert texts(answer)[0] == wanted


def test_hybrid_keeps_what_is_near_or_holds_the_identifier(actor, library) -> None:
    library.add(f"{BOILER} Fault ERR_CONN_RESET was seen once, among many other things that have nothing to do with it.")
    library.add(ROOF)
    named = ask(actor, "ERR_CONN_RESET", min_score=0.95)
    assert len(named.hits) == 1
    assert named.hits[0].scores.vector < 0.95
    assert ask(actor, "boiler fault", min_score=0.95).reason == "below_min_score"


def test_each_knowledge_base_keeps_its_own_settings(actor, make_library) -> None:
    first = make_library("First", max_results=2)
    second = make_library("Second", max_results=3, min_score=1.0)
    third = make_library("Third", max_results=1, mode="keyword")
    for number in range(4):
        for library in (first, second, third):
            library.add(f"{BOILER} {number}")
    answer = ask(actor, "boiler cellar")
    by_kb = [str(hit.document.knowledge_base_id) for hit in answer.hits]
    assert (by_kb.count(first.id), by_kb.count(second.id), by_kb.count(third.id)) == (2, 0, 1)
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
    assert len(ask(actor, "boiler cellar", max_results=7, min_score=0, mode="vector", collapse_duplicates=False).hits) == 7


def test_a_weak_knowledge_base_gives_its_share_behind_a_large_strong_one(actor, make_library) -> None:
    strong, weak = make_library("Strong"), make_library("Weak")
    for number in range(80):
        strong.add(f"boiler cellar {number}")
    weak.add("Somewhere in a long text about other things a boiler is named, too.")
    answer = ask(actor, "boiler cellar")
    assert len(answer.hits) == 6
    assert str(answer.hits[-1].document.knowledge_base_id) == weak.id


def test_one_space_answers_whatever_stands_in_another(actor, library, make_space, second_partition) -> None:
    """While a model is changed, vectors of both are there."""
    other = make_space("other", provider="hashing", dimension=384, pk=second_partition)
    library.add(BOILER)
    library.add(CAT, space=other)
    answer = ask(actor, "boiler", mode="vector", explain=True)
    assert texts(answer) == [BOILER]
    assert answer.explanation["embedding_models"] == ["hashing"]
    KnowledgeBase.objects.filter(id=library.id).update(space=other)
    answer = ask(actor, "cat", mode="vector", explain=True)
    assert texts(answer) == [CAT]
    assert answer.explanation["embedding_models"] == ["other"]


def test_a_failed_embedding(actor, library, make_space) -> None:
    library.add(BOILER)
    # An address where nobody listens.
    broken = make_space("broken", provider="openai", dimension=512, endpoint="http://127.0.0.1:9/v1")
    EmbeddingUse.objects.filter(kb=library.knowledge_base.id).update(space=broken.pk)
    KnowledgeBase.objects.filter(id=library.id).update(space=broken)
    answer = ask(actor, "boiler")
    assert texts(answer) == [BOILER]
    assert answer.degraded == "embedding_error"
    assert answer.notes
    with pytest.raises(RetrievalFailed) as caught:
        ask(actor, "boiler", mode="vector")
    assert caught.value.status == 503
    assert caught.value.extra["reason"] == "embedding_error"
    trace = RetrievalTrace.objects.get(id=caught.value.extra["trace_id"])
    assert trace.reason == "embedding_error"
    assert trace.error


def test_a_failed_store(actor, library) -> None:
    library.add(BOILER)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '1ms'")
        try:
            with connection.execute_wrapper(_slow):
                with pytest.raises(RetrievalFailed) as caught:
                    ask(actor, "boiler")
        finally:
            cursor.execute("SET statement_timeout = 0")
    assert caught.value.extra["reason"] == "store_error"
    assert RetrievalTrace.objects.get(id=caught.value.extra["trace_id"]).reason == "store_error"


def _slow(execute, sql, params, many, context):
    """A database that is too busy to answer the search of vectors."""
    if "halfvec" in sql if isinstance(sql, str) else "halfvec" in sql.as_string(None):
        with context["cursor"].db.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(1)")
    return execute(sql, params, many, context)


def test_a_long_query_is_cut_to_the_window_with_a_note(actor, library) -> None:
    library.add(BOILER)
    answer = ask(actor, "boiler " * 2000)
    assert texts(answer) == [BOILER]
    assert "longer than the 256 tokens" in answer.notes[0]


def test_neighbours_are_joined_once_and_adjacent_hits_become_one(actor, library) -> None:
    parts = ["The first part.", "The boiler is here.", "Another boiler is here.", "The fourth part.", "The fifth part."]
    library.add(*parts)
    (hit,) = ask(actor, "boiler", mode="keyword", neighbours=1).hits
    assert hit.text == "\n\n".join(parts[:4])
    assert (hit.span.start, hit.span.end, hit.chunks) == (0, len(hit.text), 4)
    whole = "\n\n".join(parts)
    assert whole[hit.match.start : hit.match.end] in parts[1:3]
    assert len(ask(actor, "boiler", mode="keyword", neighbours=0).hits) == 2


def test_overlap_of_neighbours_is_not_repeated(actor, library) -> None:
    text = "One two three four five six seven eight nine ten boiler."
    library.add(text[:30], text[20:], markdown=text, chunk_values=[{"start": 0, "end": 30}, {"start": 20, "end": len(text)}])
    (hit,) = ask(actor, "boiler", mode="keyword", neighbours=1).hits
    assert hit.text == text


def test_the_header_of_a_cut_table_is_repeated(actor, library) -> None:
    header, rows = "| part | stock |\n| --- | --- |", ["| boiler | 1 |", "| chimney | 2 |"]
    markdown = "\n".join([header, *rows])
    second = markdown.index(rows[1])
    library.add(
        "\n".join([header, rows[0]]), rows[1], markdown=markdown,
        chunk_values=[
            {"start": 0, "end": second - 1, "table_header": [0, len(header)]},
            {"start": second, "end": len(markdown), "table_header": [0, len(header)]},
        ],
    )  # fmt: skip
    (hit,) = ask(actor, "chimney", mode="keyword").hits
    assert hit.text == f"{header}\n{rows[1]}"
    assert markdown[hit.span.start : hit.span.end] == rows[1]
    (joined,) = ask(actor, "chimney", mode="keyword", neighbours=1).hits
    assert joined.text == markdown


def test_a_new_language_is_noticed(actor, library) -> None:
    library.add("Die Häuser haben neue Dächer.", language="de")
    assert len(ask(actor, "Dach Haus", mode="keyword").hits) == 1
    library.add("All houses were painted.", language="en")
    assert len(ask(actor, "house painting", mode="keyword").hits) == 1


def test_chunks_of_a_deleted_document_are_gone(actor, library) -> None:
    document = library.add(BOILER)
    library.add(ROOF)
    Chunk.objects.filter(document=document).delete()
    assert BOILER not in texts(ask(actor, "boiler"))
