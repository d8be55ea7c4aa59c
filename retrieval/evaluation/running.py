"""Evaluations: every judged question asked in each way, question by question, so that a kill repeats one.

What is asked sees what everybody who may read the knowledge base sees: private documents take no part, whoever asked for it. The searches
leave no traces: the evaluation is their record, and traces are what people asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from config.errors import InvalidInput
from kb import access
from kb.access import Actor
from kb.models import Document, KnowledgeBase
from kb.words.folding import plain
from kb.words.query import Wording
from retrieval import jobs
from retrieval.belonging import rows_of
from retrieval.encoding import QueryVectors
from retrieval.evaluation import metrics
from retrieval.evaluation.judging import Expectation, shown
from retrieval.evaluation.requests import EvaluationInput, Way
from retrieval.hits import Hit
from retrieval.jobs import Lease
from retrieval.models import EvaluatedQuestion, Evaluation, Judgement
from retrieval.query import Query, make_query
from retrieval.requests import MinScores, SearchRequest
from retrieval.search import find
from retrieval.traces import describe_target

KIND = "evaluation"
# Passages asked for each place of the list: several are often of one document.
PASSAGES_A_PLACE = 5
# The questions of older evaluations go; their figures stay.
WHOLE_EVALUATIONS_KEPT = 100


def start_evaluation(actor: Actor, knowledge_base: KnowledgeBase, wanted: EvaluationInput, *, send: bool = True) -> Evaluation:
    """Open one for the judgements as they are now. `Conflict` while one is open, `InvalidInput` without judgements."""
    rows = list(rows_of(knowledge_base, Judgement).order_by("created_at", "id"))
    if not rows:
        raise InvalidInput("There are no judgements to evaluate by. Write some, or add hits of a search.")
    own = _query(actor, knowledge_base.id, rows[0].question, "own", wanted.k).targets[0]
    model = knowledge_base.space.embedding_model.name if knowledge_base.space else ""
    told = {"ways": list(dict.fromkeys(wanted.ways)), "k": wanted.k, "own": describe_target(own), "embedding_model": model}
    with transaction.atomic():
        made = jobs.open_job(Evaluation, actor, knowledge_base, settings=told, total=len(rows), comment=wanted.comment)
        EvaluatedQuestion.objects.bulk_create(
            EvaluatedQuestion(
                organization_id=made.organization_id,
                evaluation=made,
                place=place,
                judgement=row,
                question=row.question,
                expected=row.expected,
            )
            for place, row in enumerate(rows)
        )
        if send:
            jobs.send(KIND, made)
    return made


def questions(evaluation: Evaluation) -> QuerySet[EvaluatedQuestion]:
    return EvaluatedQuestion.objects.filter(organization=evaluation.organization_id, evaluation=evaluation)


def work(lease: Lease) -> bool:
    """A slice: questions that were not asked yet, each committed by itself; then the figures."""
    evaluation = lease.job
    waiting = questions(evaluation).filter(results__isnull=True).order_by("place")
    actor = access.system_actor(evaluation.organization)
    while row := waiting.first():
        if lease.is_over:
            return False
        results = ask(actor, evaluation, row)
        with transaction.atomic():
            lease.advance(done=row.place + 1)
            EvaluatedQuestion.objects.filter(pk=row.pk).update(results=results)
    told = figures_of(evaluation)
    errors = [f"{way}: {one['error']}" for way, one in told.items() if one["error"] and not one["scored"]]
    with transaction.atomic():
        jobs.close(lease, figures=told, error=" ".join(errors))
        _forget_old(evaluation)
    return True


def ask(actor: Actor, evaluation: Evaluation, row: EvaluatedQuestion) -> dict[str, Any]:
    """One question in each way: {"stale": …, "ways": {way: {ndcg, recall, reciprocal_rank, found, reason, error, milliseconds}}}."""
    expected = shown(evaluation.knowledge_base, [row.expected])[0]
    standing = {number: one for number, one in enumerate(expected) if not one.is_stale}
    vectors = QueryVectors(row.question, evaluation.organization_id)
    ways = {}
    for way in evaluation.settings["ways"]:
        query = _query(actor, evaluation.knowledge_base_id, row.question, way, evaluation.settings["k"])
        outcome, cause = find(query, vectors)
        ways[way] = {
            "reason": str(outcome.reason),
            "error": outcome.error if cause is not None else "",
            "degraded": str(outcome.degraded),
            "milliseconds": round(outcome.timings["total"], 2),
            "found": list(dict.fromkeys(str(hit.document.id) for hit in outcome.hits))[: evaluation.settings["k"]],
        }
        if cause is None and standing:
            ways[way] |= asdict(score(outcome.hits, standing, evaluation.settings["k"]))
    return {"stale": [number for number, one in enumerate(expected) if one.is_stale], "ways": ways}


def score(hits: Sequence[Hit], expected: Mapping[int, Expectation], k: int) -> metrics.Figures:
    """The figures of an answer by what was expected of it."""
    grades = {number: one.grade for number, one in expected.items()}
    places = ((str(hit.document.id), [number for number, one in expected.items() if fulfils(hit, one)]) for hit in hits)
    return metrics.measure(metrics.gains_of(places, grades), grades.values(), k)


def fulfils(hit: Hit, expected: Expectation) -> bool:
    """Also by a document that says nearly the same, which the hit names."""
    if expected.document_id not in {hit.document.id, *(twin.document.id for twin in hit.also_in)}:
        return False
    return not expected.quote or Wording(hit.text).holds(plain(expected.quote))


def figures_of(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """By way: means, counts, and the first error. A question of which all expectations are gone is in no figure but `stale`."""
    results = list(questions(evaluation).filter(results__isnull=False).order_by("place").values_list("results", flat=True))
    told = {}
    for way in evaluation.settings["ways"]:
        asked = [one["ways"][way] for one in results if way in one["ways"]]
        summary = metrics.summarise(
            [metrics.Figures(one["ndcg"], one["recall"], one["reciprocal_rank"]) for one in asked if "ndcg" in one],
            empty=sum(bool(one["reason"]) and not one["error"] for one in asked),
            failed=sum(bool(one["error"]) for one in asked),
            milliseconds=[one["milliseconds"] for one in asked],
        )
        told[way] = asdict(summary) | {
            "stale": sum("ndcg" not in one and not one["error"] for one in asked),
            "error": next((one["error"] for one in asked if one["error"]), ""),
        }
    return told


def _query(actor: Actor, knowledge_base_id: UUID, question: str, way: Way, k: int) -> Query:
    """A search of what everybody may see. A mode by itself has no lowest score and nothing after it, so that its ranking is what counts."""
    named = {"query": question, "knowledge_bases": [str(knowledge_base_id)]}
    if way == "own":
        request = SearchRequest(**named)
    else:
        alone = MinScores(vector=0.0, keyword=0.0, reranked=0.0)
        most = min(PASSAGES_A_PLACE * k, 100)
        plain = {"rerank": None, "diversity": 0.0, "max_per_document": 0, "collapse_duplicates": False, "neighbours": 0}
        request = SearchRequest(**named, **plain, mode=way, max_results=most, min_score=alone)
    query = make_query(actor, request)
    everybody = Q(visibility=Document.Visibility.ORGANIZATION)
    hides = Document.objects.filter(~everybody, knowledge_base=knowledge_base_id).exists()
    return replace(
        query,
        filters=everybody if hides else None,
        readable=everybody,
        readable_chunks=Q(document__visibility=Document.Visibility.ORGANIZATION),
        hides=hides,
    )


def _forget_old(evaluation: Evaluation) -> None:
    old = rows_of(evaluation.knowledge_base, Evaluation).order_by("-created_at").values_list("id", flat=True)[WHOLE_EVALUATIONS_KEPT:]
    EvaluatedQuestion.objects.filter(evaluation__in=list(old)).delete()
