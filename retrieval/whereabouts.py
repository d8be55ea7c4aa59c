"""Where documents stand that somebody expected: among the hits, too far down, filtered out, or not there at all."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import Q

from kb.models import Chunk, Document, Source
from retrieval.candidates import Candidate, find_candidates
from retrieval.conditions import conditions_of
from retrieval.encoding import EncodingFailed, QueryVectors
from retrieval.explaining import Course, Examiner, terms_of
from retrieval.explanation import ExplainedCondition, ExplainedDocument, ExplainedPassage, Verdict
from retrieval.hydration import Found

# How far down each side is looked for a document that is no hit.
DEEP = 1000


def explain(course: Course, vectors: QueryVectors) -> tuple[dict[str, Any], bool]:
    """The members of an explanation that a search does not tell by itself, and whether they name a private document."""
    examiner = Examiner(course)
    told = {
        "sides": course.findings.sides,
        "terms": terms_of(course.query, course.shelves, course.words),
        "hits": examiner.hits(),
        "dropped_candidates": examiner.dropped(),
        "documents": find_whereabouts(examiner, vectors),
    }
    return {name: [one.model_dump(mode="json") for one in members] for name, members in told.items()}, examiner.private


def find_whereabouts(examiner: Examiner, vectors: QueryVectors) -> list[ExplainedDocument]:
    """In the order asked for; what the asker may not see is as absent."""
    course = examiner.course
    held = [one for one in course.query.asked_about.values() if one is not None and _absence(one, course) is None]
    asked = course.query.request.filters if course.query.request else None
    holdings = conditions_of(asked, course.query.types, organization=course.query.organization, documents=[one.id for one in held])
    best = _best_passages(examiner, [one.id for one in held], vectors) if held else {}
    told = []
    for identifier, document in course.query.asked_about.items():
        if document is None:
            why = "There is no such document, or you cannot see it."
            told.append(_told(identifier, None, "absent", why, None, [], []))
            continue
        examiner.private |= document.visibility == Document.Visibility.PRIVATE
        title = str(document)[:300]
        absence = _absence(document, course)
        if absence is not None:
            told.append(_told(identifier, title, *absence, None, [], []))
            continue
        holding = holdings.get(identifier)
        conditions = holding.conditions if holding else []
        found = best.get(identifier)
        passage = _passage(examiner, found) if found else None
        places = [place for place, hit in enumerate(course.hits, start=1) if _is_of(hit, identifier)]
        verdict = _verdict(places, holding is None or holding.whole, conditions, passage, course)
        told.append(_told(identifier, title, *verdict, passage, places, conditions))
    return told


def _told(
    identifier: UUID,
    title: str | None,
    verdict: Verdict,
    why: str,
    best: ExplainedPassage | None,
    hits: list[int],
    conditions: list[ExplainedCondition],
) -> ExplainedDocument:
    return ExplainedDocument(document_id=identifier, title=title, verdict=verdict, why=why, hits=hits, best=best, conditions=conditions)


def _is_of(hit, identifier: UUID) -> bool:
    return hit.document.id == identifier or any(twin.document.id == identifier for twin in hit.also_in)


def _absence(document: Document, course: Course) -> tuple[Verdict, str] | None:
    """What keeps a document out of any search of these knowledge bases."""
    if document.knowledge_base_id not in {target.id for target in course.query.targets}:
        return "other_knowledge_base", f"It is in the knowledge base {document.knowledge_base}, which was not searched."
    if document.tombstoned_at is not None or document.source.state != Source.State.ACTIVE:
        return "removed", "It was taken down: its source no longer has it, or is being removed."
    if document.chunk_count == 0:
        failed = f"Its last attempt failed: {document.last_error}" if document.last_error else "No run has published it."
        return "not_published", f"It has no passages. {failed}"[:1000]
    return None


def _verdict(
    places: Sequence[int], holds: bool, conditions: Sequence[ExplainedCondition], passage: ExplainedPassage | None, course: Course
) -> tuple[Verdict, str]:
    if places:
        return "hit", f"It is among the hits, at {', '.join(map(str, places))}."
    if not holds:
        failing = [f"{one.key} {one.type} {one.value!r}" for one in conditions if not one.holds]
        return "filtered", f"The filters leave it out. Conditions that do not hold: {'; '.join(failing) or 'none, but one is negated'}."[
            :1000
        ]
    if passage is None:
        if course.words.terms and all(shelf.mode == "keyword" for shelf in course.shelves):
            return "not_found", "None of its passages holds a word of the question."
        return "not_found", "None of its passages has a vector in a space that was searched, or holds a word of the question."
    if passage.place is None:
        return passage.verdict, f"{passage.why} Neither side has it among its first {DEEP:,}."
    return passage.verdict, passage.why


def _passage(examiner: Examiner, found: Found) -> ExplainedPassage:
    if any(hit.chunk_id == found.row["id"] for hit in examiner.course.hits):
        return examiner.passage(found, "hit", examiner.why_passed(found))
    return examiner.passage(found, *examiner.verdict(found))


def _best_passages(examiner: Examiner, documents: Sequence[UUID], vectors: QueryVectors) -> dict[UUID, Found]:
    """The best candidate of each document: among the first of each side, else by its own scores, without ranks."""
    query = examiner.course.query
    owners = dict(Chunk.objects.filter(organization=query.organization, document__in=documents).values_list("id", "document_id"))
    best: dict[UUID, Candidate] = {}
    ranked = _candidates(examiner, query.filters, vectors)
    for place, candidate in enumerate(ranked, start=1):
        owner = owners.get(candidate.chunk)
        if owner is not None and owner not in best:
            best[owner] = candidate
            examiner.places.setdefault(candidate.chunk, place)
    missing = [identifier for identifier in documents if identifier not in best]
    for candidate in _candidates(examiner, Q(id__in=missing), vectors) if missing else []:
        scores = replace(candidate.scores, fused=None, vector_rank=None, keyword_rank=None)
        best.setdefault(owners[candidate.chunk], replace(candidate, scores=scores))
    found = examiner.read(best.values())
    examiner.prepare(found)
    return {one.row["document_id"]: one for one in found}


def _candidates(examiner: Examiner, filters: Q | None, vectors: QueryVectors) -> Sequence[Candidate]:
    course = examiner.course
    query = replace(course.query, filters=filters, explain=False)
    try:
        return find_candidates(query, course.shelves, course.words, vectors, depth=DEEP).candidates
    except EncodingFailed:
        return []
