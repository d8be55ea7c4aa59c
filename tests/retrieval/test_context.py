from dataclasses import replace
from uuid import UUID

import pytest

from retrieval.context import build_context
from retrieval.hits import DocumentReference, Hit, Scores, Span, Twin


def hit(number: int, text: str, *, document: int = 0, start: int = 0, header: str = "", **values) -> Hit:
    reference = DocumentReference(UUID(int=document), f"Title {document}", None, UUID(int=1), UUID(int=2))
    span = Span(start, start + len(text))
    return Hit(
        citation=f"c:{number}", chunk_id=number, text=f"{header}\n{text}" if header else text, score=1 / number, scores=Scores(),
        document=reference, heading_path=("Title 0", "Part"), page=values.get("page"), page_end=None, span=span, match=span,
        header_length=len(header) + 1 if header else 0,
    )  # fmt: skip


def test_marks_and_headings() -> None:
    context = build_context([hit(1, "alpha", page=3), hit(2, "beta", document=1)])
    assert context.text == "[1] Title 0 > Part, page 3\nalpha\n\n[2] Title 1 > Title 0 > Part\nbeta"
    assert [(citation.mark, citation.ids) for citation in context.citations] == [(1, ("c:1",)), (2, ("c:2",))]
    assert context.omitted == 0


def test_nothing() -> None:
    assert build_context([]).text == ""
    assert build_context([]).is_empty


def test_neighbours_of_one_document_become_one_passage() -> None:
    text = "one two three four"
    hits = [hit(1, text[8:], start=8), hit(2, "other", document=1), hit(3, text[:10], start=0)]
    context = build_context(hits)
    assert [citation.ids for citation in context.citations] == [("c:1", "c:3"), ("c:2",)]
    assert context.text.startswith(f"[1] Title 0 > Part\n{text}\n\n[2]")


def test_a_hit_between_two_joins_them() -> None:
    context = build_context([hit(1, "aaa", start=0), hit(2, "ccc", start=10), hit(3, "bbbbbb", start=3)])
    assert context.text.endswith("\naaabbbbbb\nccc")


def test_only_the_first_table_header_is_kept() -> None:
    context = build_context([hit(1, "| 2 |", start=20, header="| n |"), hit(2, "| 1 |", start=14, header="| n |")])
    assert context.text.endswith("\n| n |\n| 1 |\n| 2 |")


@pytest.mark.parametrize("cap", [0, -1])
def test_no_cap(cap: int) -> None:
    assert len(build_context([hit(n, "x" * 50_000, document=n) for n in range(1, 4)], cap).citations) == 3


def test_the_first_that_does_not_fit_ends_it_and_the_note_is_inside() -> None:
    hits = [hit(1, "a" * 100, document=1), hit(2, "b" * 5000, document=2), hit(3, "c", document=3)]
    context = build_context(hits, 300)
    assert [citation.ids for citation in context.citations] == [("c:1",)]
    assert context.text.endswith("[2 more passages left out for length]")
    assert context.omitted == 2


@pytest.mark.parametrize("count", [lambda text: len(text.split()), lambda text: -(-len(text) // 4)])
def test_every_cap_of_tokens_holds(count) -> None:
    hits = [hit(n, "word " * n, document=n) for n in range(1, 12)]
    before = 0
    for cap in range(1, count(build_context(hits, 0).text) + 2):
        context = build_context(hits, 0, max_tokens=cap, count=count)
        assert not context.text or count(context.text) <= cap
        assert len(context.citations) >= before
        before = len(context.citations)
        both = build_context(hits, 200, max_tokens=cap, count=count)
        assert len(both.text) <= 200
        assert len(both.citations) == min(before, len(build_context(hits, 200).citations))
    assert before == 11


def test_documents_that_say_the_same_are_cited_too() -> None:
    other = DocumentReference(UUID(int=9), "Copy", None, UUID(int=1), UUID(int=2))
    (citation,) = build_context([replace(hit(1, "alpha"), also_in=(Twin("c:7", other),))]).citations
    assert [(twin.citation, twin.document.title) for twin in citation.also_in] == [("c:7", "Copy")]


def test_every_cap_holds() -> None:
    hits = [hit(n, "word " * n, document=n) for n in range(1, 12)]
    whole = len(build_context(hits, 0).text)
    before = 0
    for cap in range(1, whole + 3):
        context = build_context(hits, cap)
        assert len(context.text) <= cap
        assert len(context.citations) + context.omitted == 11
        assert len(context.citations) >= before
        before = len(context.citations)
    assert before == 11
