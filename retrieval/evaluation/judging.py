"""Judgements: what people said a question should find, written by them, by a file, or from the hits of a search.

An expectation is {document, grade, quote}: a document counts as found by any passage of it, or, with a quote, by one that holds those
words. Words instead of a chunk, because chunks are cut anew when their settings change. Everybody who sees the knowledge base sees its
judgements, so a private document cannot be expected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from config.errors import Conflict, InvalidInput
from kb import access
from kb.access import Actor, Level
from kb.models import Chunk, Document, KnowledgeBase, Source, key_hash
from kb.words.folding import plain
from kb.words.query import Wording
from retrieval.belonging import rows_of
from retrieval.evaluation.requests import MAX_EXPECTED, ExpectedInput, JudgementInput
from retrieval.models import Judgement, RetrievalTrace

MAX_JUDGEMENTS = 1000
# Of a passage that is judged, its beginning: enough to tell it, little enough to stay whole when it is cut elsewhere.
QUOTED = 120

# Documents that a search could find, for everybody who may see the knowledge base.
standing = Q(tombstoned_at=None, chunk_count__gt=0, source__state=Source.State.ACTIVE, visibility=Document.Visibility.ORGANIZATION)


@dataclass(frozen=True, slots=True)
class Expectation:
    """`state`: "there", "gone" (the document answers nothing any more), or "quote_gone" (no passage of it holds the words)."""

    document_id: UUID
    grade: int
    quote: str
    title: str
    url: str
    state: str

    @property
    def is_stale(self) -> bool:
        return self.state != "there"


def create_judgement(actor: Actor, knowledge_base: KnowledgeBase, wanted: JudgementInput) -> Judgement:
    """`Conflict` when the question is judged already, with its id; `InvalidInput` names documents that cannot be expected."""
    known = find_judgement(knowledge_base, wanted.question)
    if known is not None:
        raise Conflict("This question is judged already. Change that judgement instead.", judgement_id=str(known.id))
    expected = resolve(actor, knowledge_base, wanted.expected)
    check_room(knowledge_base, 1)
    return Judgement.objects.create(
        organization_id=knowledge_base.organization_id,
        knowledge_base=knowledge_base,
        question=wanted.question,
        question_hash=question_hash(wanted.question),
        expected=expected,
        note=wanted.note,
        author=actor.user,
        author_name=actor.name,
    )


def replace_judgement(actor: Actor, judgement: Judgement, wanted: JudgementInput) -> Judgement:
    """What it expected already may stay, also where that is gone."""
    other = find_judgement(judgement.knowledge_base, wanted.question)
    if other is not None and other.pk != judgement.pk:
        raise Conflict("Another judgement has this question. Change that one, or write another question.", judgement_id=str(other.id))
    judgement.expected = resolve(actor, judgement.knowledge_base, wanted.expected, kept=judgement.expected)
    judgement.question, judgement.question_hash = wanted.question, question_hash(wanted.question)
    judgement.note, judgement.author, judgement.author_name = wanted.note, actor.user, actor.name
    judgement.save()
    return judgement


def judge_hits(
    actor: Actor, knowledge_base: KnowledgeBase, trace: RetrievalTrace, citations: Sequence[str], *, grade: int = 1
) -> Judgement:
    """Expect what a search found, for the question it was asked: adds to the judgement of that question, or makes it."""
    found = {hit["citation"] for hit in trace.hits if hit["knowledge_base_id"] == str(knowledge_base.id)}
    if missing := [citation for citation in citations if citation not in found]:
        raise InvalidInput(f"This search did not find {', '.join(missing[:5])} in this knowledge base. Name citations of its hits.")
    added = [ExpectedInput(citation=citation, grade=grade) for citation in citations]
    known = find_judgement(knowledge_base, trace.query)
    if known is None:
        return create_judgement(actor, knowledge_base, JudgementInput(question=trace.query, expected=added))
    expected = resolve(actor, knowledge_base, added)
    anew = {(one["document"], one["quote"]) for one in expected}
    known.expected = [one for one in known.expected if (one["document"], one["quote"]) not in anew] + expected
    if len(known.expected) > MAX_EXPECTED:
        raise InvalidInput(f"A question expects at most {MAX_EXPECTED} documents. Take some out first.")
    known.save(update_fields=["expected", "updated_at"])
    return known


def find_judgement(knowledge_base: KnowledgeBase, question: str) -> Judgement | None:
    return rows_of(knowledge_base, Judgement).filter(question_hash=question_hash(question)).first()


def question_hash(question: str) -> bytes:
    """Equal for questions that differ in spacing and capitals alone."""
    return key_hash(" ".join(question.split()).casefold())


def check_room(knowledge_base: KnowledgeBase, more: int) -> None:
    if rows_of(knowledge_base, Judgement).count() + more > MAX_JUDGEMENTS:
        raise InvalidInput(f"A knowledge base has at most {MAX_JUDGEMENTS:,} judgements. Remove some first.")


def resolve(
    actor: Actor, knowledge_base: KnowledgeBase, expected: Sequence[ExpectedInput], *, kept: Iterable[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """As it is stored. A document is named by id, address or key; `kept` ids need not be there any more. `InvalidInput` names each that is
    not in the knowledge base, that several bear, or that is private."""
    known = {one["document"] for one in kept}
    documents = access.rows(actor, Document).filter(knowledge_base=knowledge_base, tombstoned_at=None, source__state=Source.State.ACTIVE)
    chunks = access.rows(actor, Chunk).filter(knowledge_base=knowledge_base).select_related("document")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    faults = []
    for place, one in enumerate(expected):
        quote = " ".join(one.quote.split())
        try:
            if one.citation is not None:
                chunk = _chunk(chunks, one.citation)
                document, quote = chunk.document, quote or _beginning(chunk.text)
            elif one.document in known:
                found[one.document, quote] = {"document": one.document, "grade": one.grade, "quote": quote}
                continue
            else:
                document = _document(documents, [name for name in (one.document, one.name) if name])
            if document.visibility == Document.Visibility.PRIVATE:
                raise InvalidInput("this document is private; everybody who sees the knowledge base sees its judgements")
        except InvalidInput as error:
            faults.append({"path": f"expected[{place}]", "message": error.message})
            continue
        found[str(document.id), quote] = {"document": str(document.id), "grade": one.grade, "quote": quote}
    if faults:
        raise InvalidInput(f"The request is not valid at {faults[0]['path']}: {faults[0]['message']}.", errors=faults)
    return list(found.values())


def _chunk(chunks: QuerySet[Chunk], citation: str) -> Chunk:
    number = citation.removeprefix("c:")
    found = chunks.filter(id=int(number)).first() if number.isascii() and number.isdigit() and len(number) < 19 else None
    if found is None:
        raise InvalidInput("no passage of this knowledge base has this citation any more; search again")
    return found


def _document(documents: QuerySet[Document], names: Sequence[str]) -> Document:
    """By the first of the names that is anybody's."""
    found: list[Document] = []
    for name in names:
        try:
            named = Q(id=UUID(name))
        except ValueError:
            named = Q(key=name) | Q(url=name)
        found = found or list(documents.filter(named)[:2])
    if not found:
        raise InvalidInput("this knowledge base has no such document; name its id, its address or its key")
    if len(found) > 1:
        raise InvalidInput("several documents of this knowledge base are named so; name its id")
    return found[0]


def _beginning(text: str) -> str:
    """Whole words of the beginning of a passage."""
    flat = " ".join(text.split())
    return flat if len(flat) <= QUOTED else flat[: QUOTED + 1].rpartition(" ")[0] or flat[:QUOTED]


def shown(knowledge_base: KnowledgeBase, lists: Sequence[Sequence[Mapping[str, Any]]], *, quotes: bool = True) -> list[list[Expectation]]:
    """Stored lists as they stand now, one statement for all. Without `quotes` the texts are not read: no state is "quote_gone".

    Of a document that is gone, or was made private since, nothing is told but its id.
    """
    wanted = {UUID(one["document"]) for expected in lists for one in expected}
    rows = Document.objects.filter(standing, organization=knowledge_base.organization_id, knowledge_base=knowledge_base, id__in=wanted)
    documents = {row.id: row for row in rows.only("id", "title", "key", "url")}
    quoted = {UUID(one["document"]) for expected in lists for one in expected if one["quote"]} & documents.keys() if quotes else set()
    texts: dict[UUID, list[Wording]] = {document: [] for document in quoted}
    for document, text in Chunk.objects.filter(document__in=quoted).values_list("document_id", "text"):
        texts[document].append(Wording(text))
    return [[_expectation(one, documents, texts) for one in expected] for expected in lists]


def _expectation(one: Mapping[str, Any], documents: Mapping[UUID, Document], texts: Mapping[UUID, Sequence[Wording]]) -> Expectation:
    identifier = UUID(one["document"])
    document = documents.get(identifier)
    if document is None:
        return Expectation(identifier, one["grade"], "", "", "", "gone")
    held = not one["quote"] or identifier not in texts or any(wording.holds(plain(one["quote"])) for wording in texts[identifier])
    return Expectation(
        identifier, one["grade"], one["quote"], document.title or document.key, document.url, "there" if held else "quote_gone"
    )


def editable(actor: Actor, knowledge_base_id: str | UUID) -> KnowledgeBase:
    return access.get_knowledge_base(actor, knowledge_base_id, Level.EDIT)
