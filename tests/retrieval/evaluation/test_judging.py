"""Judgements as people write them, by hand, by file and from hits."""

import pytest

from config.errors import Conflict, InvalidInput
from kb.access import actor_for_user
from kb.models import Chunk, Document
from retrieval.belonging import rows_of
from retrieval.evaluation import exchange, judging
from retrieval.evaluation.requests import ExpectedInput, JudgementInput
from retrieval.models import Judgement
from retrieval.requests import SearchRequest
from retrieval.search import search
from retrieval.traces import get_trace

pytestmark = pytest.mark.django_db


def judge(actor, library, question: str, *expected: ExpectedInput):
    return judging.create_judgement(actor, library.knowledge_base, JudgementInput(question=question, expected=list(expected)))


def states(library, judgement) -> list[str]:
    return [one.state for one in judging.shown(library.knowledge_base, [judgement.expected])[0]]


def test_documents_are_named_by_id_address_key_or_citation(actor, library) -> None:
    first = library.add("The boiler stands in the cellar.", url="https://a.example/boiler")
    second = library.add("The attic is empty.")
    chunk = Chunk.objects.get(document=second)
    named = [str(first.id), "https://a.example/boiler", "0.md"]
    for number, name in enumerate(named):
        judgement = judge(actor, library, f"Question {number}?", ExpectedInput(document=name, grade=3))
        assert judgement.expected == [{"document": str(first.id), "grade": 3, "quote": ""}]
    judgement = judge(actor, library, "Attic?", ExpectedInput(citation=f"c:{chunk.pk}"))
    assert judgement.expected == [{"document": str(second.id), "grade": 1, "quote": "The attic is empty."}]
    assert states(library, judgement) == ["there"]
    assert (judgement.author_name, judgement.author) == ("alice", actor.user)


def test_what_is_not_there_ambiguous_or_private_cannot_be_expected(actor, make_library) -> None:
    library, other = make_library("One"), make_library("Two")
    elsewhere = other.add("Elsewhere.")
    for _ in range(2):
        library.add("Twice.", url="https://a.example/twice")
    private = library.add("Secret.", visibility=Document.Visibility.PRIVATE, owner=actor.user)
    expected = [ExpectedInput(document=name) for name in (str(elsewhere.id), "nothing.md", "https://a.example/twice", str(private.id))]
    with pytest.raises(InvalidInput) as caught:
        judge(actor, library, "Where?", *expected, ExpectedInput(citation="c:999999999"))
    assert [fault["path"] for fault in caught.value.extra["errors"]] == [f"expected[{place}]" for place in range(5)]
    assert "private" in caught.value.extra["errors"][3]["message"]
    assert not rows_of(library.knowledge_base, Judgement).exists()


def test_a_question_is_judged_once_whatever_its_capitals(actor, library) -> None:
    document = library.add("The boiler stands in the cellar.")
    first = judge(actor, library, "Where is the boiler?", ExpectedInput(document=str(document.id)))
    with pytest.raises(Conflict) as caught:
        judge(actor, library, " where is  the BOILER?", ExpectedInput(document=str(document.id)))
    assert caught.value.extra["judgement_id"] == str(first.id)


def test_what_is_gone_is_told_and_may_stay(actor, library) -> None:
    gone, changed = library.add("The boiler stands in the cellar."), library.add("The attic is empty.")
    judgement = judge(
        actor,
        library,
        "Where?",
        ExpectedInput(document=str(gone.id), quote="boiler stands"),
        ExpectedInput(document=str(changed.id), quote="attic IS  empty"),
    )
    assert states(library, judgement) == ["there", "there"]
    Document.objects.filter(id=gone.id).delete()
    Chunk.objects.filter(document=changed).update(text="The attic is full.")
    told = judging.shown(library.knowledge_base, [judgement.expected])[0]
    assert [(one.state, one.quote) for one in told] == [("gone", ""), ("quote_gone", "attic IS empty")]
    kept = [ExpectedInput(document=one["document"], quote=one["quote"]) for one in judgement.expected]
    again = judging.replace_judgement(actor, judgement, JudgementInput(question="Where now?", expected=kept))
    assert [one["document"] for one in again.expected] == [str(gone.id), str(changed.id)]


def test_a_document_made_private_is_as_gone(actor, library) -> None:
    document = library.add("The boiler stands in the cellar.")
    judgement = judge(actor, library, "Where?", ExpectedInput(document=str(document.id), quote="the boiler"))
    Document.objects.filter(id=document.id).update(visibility=Document.Visibility.PRIVATE)
    (told,) = judging.shown(library.knowledge_base, [judgement.expected])[0]
    assert (told.state, told.title, told.quote) == ("gone", "", "")


def test_hits_of_a_search_become_a_judgement(actor, library) -> None:
    library.add("The boiler stands in the cellar.", title="Boiler")
    library.add("The cellar is damp.", title="Cellar")
    answer = search(actor, SearchRequest(query="boiler cellar", knowledge_bases=[library.id]))
    trace = get_trace(actor, answer.trace_id)
    first, second = (hit.citation for hit in answer.hits)
    made = judging.judge_hits(actor, library.knowledge_base, trace, [first], grade=3)
    more = judging.judge_hits(actor, library.knowledge_base, trace, [second, first], grade=1)
    assert (made.pk, made.question) == (more.pk, "boiler cellar")
    assert [one["grade"] for one in more.expected] == [1, 1]
    with pytest.raises(InvalidInput, match="did not find c:1"):
        judging.judge_hits(actor, library.knowledge_base, trace, ["c:1"])


def test_a_file_goes_out_and_comes_in_elsewhere(actor, make_library) -> None:
    here, there = make_library("Here"), make_library("There")
    for library in (here, there):
        library.add("The boiler stands in the cellar.", url="https://a.example/boiler")
        library.add("The attic is empty.")
    judge(actor, here, "=SUM(1)?", ExpectedInput(document="0.md", grade=2, quote="stands, in"), ExpectedInput(document="1.md"))
    exported = exchange.export_judgements(here.knowledge_base)
    assert [one["name"] for one in exported[0]["expected"]] == ["https://a.example/boiler", "1.md"]
    for text, is_csv in ((exchange.write_csv(exported), True), (exchange.write_json(exported), False)):
        read = exchange.read_file(text.encode(), is_csv=is_csv)
        assert exchange.import_judgements(actor, here.knowledge_base, read) == exchange.Imported(0, 1)
        imported = exchange.import_judgements(actor, there.knowledge_base, read)
        assert imported == (exchange.Imported(1, 0) if is_csv else exchange.Imported(0, 1))
        judgement = rows_of(there.knowledge_base, Judgement).get()
        assert judgement.question == "=SUM(1)?"
        assert [(one["document"], one["grade"], one["quote"]) for one in judgement.expected] == [
            (str(there.documents[0].id), 2, "stands, in"),
            (str(there.documents[1].id), 1, ""),
        ]


def test_an_import_is_all_or_nothing_and_names_what_is_missing(actor, library) -> None:
    library.add("The boiler stands in the cellar.")
    data = b"question,document,grade\nBoiler?,0.md,3\nAttic?,1.md,1\nAttic?,2.md,1\n"
    with pytest.raises(InvalidInput) as caught:
        exchange.import_judgements(actor, library.knowledge_base, exchange.read_file(data, is_csv=True))
    assert [fault["path"] for fault in caught.value.extra["errors"]] == ["judgements[1].expected[0]", "judgements[1].expected[1]"]
    assert not rows_of(library.knowledge_base, Judgement).exists()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"document\n0.md\n", "question"),
        (b"question,document,colour\nWhere?,0.md,red\n", "columns"),
        (b"question,document,grade\nWhere?,0.md,4\n", "line 2: the grade"),
        (b"question,document\nWhere?\n", "line 2 has not as many cells"),
        (b"question,document\nWhere?,0.md,more\n", "line 2 has not as many cells"),
        (b"question,document\n,0.md\n", "line 2 has no question"),
        (b"question,document\nWhere?,\n", "expected"),
        (b'question,document\n"Where?,0.md\n', "not CSV"),
        (b"question,document\nWh\0ere?,0.md\n", "NUL"),
        ("question,document\nWoher?,Größe.md".encode("latin-1"), "UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_by_its_place(data, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        exchange.read_file(data, is_csv=True)


def test_there_is_an_end_to_judgements(actor, library, monkeypatch) -> None:
    document = library.add("The boiler stands in the cellar.")
    monkeypatch.setattr(judging, "MAX_JUDGEMENTS", 1)
    judge(actor, library, "One?", ExpectedInput(document=str(document.id)))
    with pytest.raises(InvalidInput, match="at most 1 judgements"):
        judge(actor, library, "Two?", ExpectedInput(document=str(document.id)))


def test_a_viewer_of_the_trace_alone_finds_nothing_foreign(actor, library, mallory) -> None:
    document = library.add("The boiler stands in the cellar.")
    stranger = actor_for_user(mallory)
    with pytest.raises(InvalidInput):
        judge(stranger, library, "Where?", ExpectedInput(document=str(document.id)))
