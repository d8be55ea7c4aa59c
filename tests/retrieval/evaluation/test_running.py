"""Evaluations: figures of known lists, what is gone, what fails, and workers that die."""

from datetime import timedelta

import pytest
from django.utils import timezone

from config.errors import Conflict, InvalidInput
from kb import services, versioning
from kb.models import Document, EmbeddingModel
from retrieval import jobs
from retrieval.evaluation import judging, running
from retrieval.evaluation.requests import EvaluationInput, ExpectedInput, JudgementInput
from retrieval.models import EvaluatedQuestion, Evaluation, RetrievalTrace

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge(actor, library):
    def made(question: str, *expected: ExpectedInput):
        return judging.create_judgement(actor, library.knowledge_base, JudgementInput(question=question, expected=list(expected)))

    return made


def evaluate(actor, library, **wanted) -> Evaluation:
    evaluation = running.start_evaluation(actor, library.knowledge_base, EvaluationInput(**wanted), send=False)
    jobs.finish_here("evaluation", evaluation)
    return evaluation


def test_figures_are_those_of_the_lists(actor, library, judge) -> None:
    boiler = library.add("boiler boiler boiler", "boiler cellar", title="Boiler")
    cellar = library.add("cellar boiler", "cellar cellar cellar", title="Cellar")
    judge("boiler", ExpectedInput(document=str(boiler.id), grade=3))
    judge("cellar", ExpectedInput(document=str(boiler.id), grade=1), ExpectedInput(document=str(cellar.id), grade=3))
    judge("attic", ExpectedInput(document=str(cellar.id)))
    evaluation = evaluate(actor, library, ways=["keyword"], comment="as it is")
    keyword = evaluation.figures["keyword"]
    assert (evaluation.status, evaluation.done, evaluation.total, evaluation.version) == ("succeeded", 3, 3, 1)
    assert (keyword["scored"], keyword["empty"], keyword["failed"], keyword["stale"]) == (3, 1, 0, 0)
    assert keyword["ndcg"] == pytest.approx(2 / 3)  # two ideal lists and an empty one
    assert keyword["recall"] == pytest.approx(2 / 3)
    assert keyword["mrr"] == pytest.approx(2 / 3)
    found = evaluation.questions.get(question="cellar").results["ways"]["keyword"]["found"]
    assert found == [str(cellar.id), str(boiler.id)]


def test_a_quote_asks_for_its_passage(actor, library, judge) -> None:
    document = library.add("boiler boiler boiler", "boiler cellar damp", title="Boiler")
    judge("boiler", ExpectedInput(document=str(document.id), quote="cellar damp"))
    figures = evaluate(actor, library, ways=["keyword"]).figures["keyword"]
    assert (figures["recall"], figures["mrr"]) == (1.0, 0.5)


def test_own_settings_are_what_people_get(actor, make_library) -> None:
    library = make_library("Strict", mode="keyword", max_results=1)
    library.add("boiler boiler boiler")
    wanted = library.add("boiler and cellar")
    question = JudgementInput(question="boiler", expected=[ExpectedInput(document=str(wanted.id))])
    judging.create_judgement(actor, library.knowledge_base, question)
    evaluation = evaluate(actor, library)
    assert set(evaluation.figures) == {"vector", "keyword", "hybrid", "own"}
    assert evaluation.figures["keyword"]["recall"] == 1.0
    assert evaluation.figures["own"]["recall"] == 0.0
    assert evaluation.settings["own"]["max_results"] == 1
    assert evaluation.settings["embedding_model"] == "hashing"
    assert not RetrievalTrace.objects.exists()


def test_what_is_gone_is_no_miss(actor, library, judge) -> None:
    gone, stays = library.add("boiler boiler"), library.add("boiler cellar")
    judge("boiler", ExpectedInput(document=str(gone.id), grade=3), ExpectedInput(document=str(stays.id)))
    judge("cellar", ExpectedInput(document=str(gone.id)))
    Document.objects.filter(id=gone.id).delete()
    evaluation = evaluate(actor, library, ways=["keyword"])
    figures = evaluation.figures["keyword"]
    assert (figures["scored"], figures["stale"], figures["recall"], figures["ndcg"]) == (1, 1, 1.0, 1.0)
    assert evaluation.questions.get(question="boiler").results["stale"] == [0]


def test_nothing_expected_that_stands_scores_nothing(actor, library, judge) -> None:
    gone = library.add("boiler boiler")
    judge("boiler", ExpectedInput(document=str(gone.id)))
    Document.objects.filter(id=gone.id).delete()
    figures = evaluate(actor, library, ways=["keyword"]).figures["keyword"]
    assert (figures["ndcg"], figures["scored"], figures["stale"]) == (None, 0, 1)


def test_private_documents_take_no_part_whoever_asks(actor, library, judge) -> None:
    private = library.add("boiler boiler boiler", visibility=Document.Visibility.PRIVATE, owner=actor.user)
    judge("boiler", ExpectedInput(document=str(library.add("boiler cellar attic").id)))
    evaluation = evaluate(actor, library)
    assert all(one["mrr"] == 1.0 for one in evaluation.figures.values())
    assert str(private.id) not in str(list(evaluation.questions.values_list("results", flat=True)))


def test_a_way_that_fails_is_told_and_the_others_are_scored(actor, library, judge) -> None:
    document = library.add("boiler cellar")
    judge("boiler", ExpectedInput(document=str(document.id)))
    EmbeddingModel.objects.filter(name="hashing").update(provider="openai", endpoint="http://127.0.0.1:9/v1")
    evaluation = evaluate(actor, library)
    assert evaluation.status == "failed"
    assert evaluation.error.startswith("vector: ")
    assert (evaluation.figures["vector"]["failed"], evaluation.figures["vector"]["ndcg"]) == (1, None)
    assert (evaluation.figures["keyword"]["ndcg"], evaluation.figures["hybrid"]["ndcg"]) == (1.0, 1.0)


def test_one_at_a_time_and_only_with_judgements(actor, library, judge) -> None:
    with pytest.raises(InvalidInput, match="no judgements"):
        running.start_evaluation(actor, library.knowledge_base, EvaluationInput())
    judge("boiler", ExpectedInput(document=str(library.add("boiler").id)))
    first = running.start_evaluation(actor, library.knowledge_base, EvaluationInput(), send=False)
    with pytest.raises(Conflict) as caught:
        running.start_evaluation(actor, library.knowledge_base, EvaluationInput(), send=False)
    assert caught.value.extra["id"] == str(first.id)
    jobs.cancel(first)
    assert first.status == "cancelled"
    assert running.start_evaluation(actor, library.knowledge_base, EvaluationInput(), send=False)
    with pytest.raises(InvalidInput):
        jobs.cancel(first)


def test_a_killed_worker_repeats_one_question(actor, library, judge, settings, monkeypatch) -> None:
    for word in ("boiler", "cellar", "attic"):
        judge(word, ExpectedInput(document=str(library.add(word).id)))
    evaluation = running.start_evaluation(actor, library.knowledge_base, EvaluationInput(ways=["keyword"]), send=False)
    asked, plain = [], running.ask

    def dying(actor, evaluation, row):
        asked.append(row.question)
        if len(asked) == 2:
            raise SystemExit  # as a kill: nothing more is written, and the lease stays
        return plain(actor, evaluation, row)

    monkeypatch.setattr(running, "ask", dying)
    with pytest.raises(SystemExit):
        jobs.work("evaluation", evaluation.id)
    jobs.work("evaluation", evaluation.id)  # the lease of the dead is still held: nobody works it
    assert asked == ["boiler", "cellar"]
    Evaluation.objects.filter(id=evaluation.id).update(lease_until=timezone.now() - timedelta(seconds=1))
    jobs.work("evaluation", evaluation.id)
    evaluation.refresh_from_db()
    assert (asked, evaluation.status) == (["boiler", "cellar", "cellar", "attic"], "succeeded")
    assert evaluation.figures["keyword"]["scored"] == 3


def test_what_kills_every_worker_is_given_up(actor, library, judge, monkeypatch) -> None:
    judge("boiler", ExpectedInput(document=str(library.add("boiler").id)))
    evaluation = running.start_evaluation(actor, library.knowledge_base, EvaluationInput(), send=False)
    Evaluation.objects.filter(id=evaluation.id).update(attempts=3)
    jobs.work("evaluation", evaluation.id)
    evaluation.refresh_from_db()
    assert (evaluation.status, "died 3 times" in evaluation.error) == ("failed", True)


def test_an_error_of_ours_is_tried_again_and_then_told(actor, library, judge, monkeypatch) -> None:
    judge("boiler", ExpectedInput(document=str(library.add("boiler").id)))
    evaluation = running.start_evaluation(actor, library.knowledge_base, EvaluationInput(), send=False)

    def failing(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(running, "ask", failing)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            jobs.work("evaluation", evaluation.id)
        evaluation.refresh_from_db()
        assert (evaluation.status, evaluation.finished_at) == ("running", None)
    jobs.work("evaluation", evaluation.id)
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.error) == ("failed", "ZeroDivisionError; the log of the workers says where.")


def test_a_slice_that_is_over_hands_on(actor, library, judge, settings) -> None:
    for word in ("boiler", "cellar"):
        judge(word, ExpectedInput(document=str(library.add(word).id)))
    evaluation = running.start_evaluation(actor, library.knowledge_base, EvaluationInput(ways=["keyword"]), send=False)
    lease = jobs.Lease(evaluation, evaluation.id)
    lease.until = 0.0
    Evaluation.objects.filter(id=evaluation.id).update(lease_token=evaluation.id)
    assert running.work(lease) is False
    assert EvaluatedQuestion.objects.filter(evaluation=evaluation, results__isnull=True).count() == 2
    jobs.cancel(evaluation)
    lease.until = float("inf")
    with pytest.raises(jobs.LeaseLost):
        running.work(lease)
    assert EvaluatedQuestion.objects.filter(evaluation=evaluation, results__isnull=True).count() == 2


def test_the_version_is_that_of_the_start(actor, library, judge) -> None:
    judge("boiler", ExpectedInput(document=str(library.add("boiler").id)))
    knowledge_base = library.knowledge_base
    document = versioning.read(knowledge_base).document
    document["retrieval"]["max_results"] = 7
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    knowledge_base.refresh_from_db()
    evaluation = evaluate(actor, library, ways=["own"])
    assert (evaluation.version, evaluation.settings["own"]["max_results"]) == (2, 7)


def test_questions_of_old_evaluations_go_and_figures_stay(actor, library, judge, monkeypatch) -> None:
    judge("boiler", ExpectedInput(document=str(library.add("boiler").id)))
    monkeypatch.setattr(running, "WHOLE_EVALUATIONS_KEPT", 1)
    first, second = (evaluate(actor, library, ways=["keyword"]) for _ in range(2))
    assert (first.questions.count(), second.questions.count()) == (0, 1)
    first.refresh_from_db()
    assert first.figures["keyword"]["scored"] == 1


def test_an_evaluation_goes_with_its_knowledge_base(actor, library, judge) -> None:
    judge("boiler", ExpectedInput(document=str(library.add("boiler").id)))
    evaluation = running.start_evaluation(actor, library.knowledge_base, EvaluationInput(), send=False)
    services.delete_knowledge_base(library.knowledge_base)
    jobs.work("evaluation", evaluation.id)
    evaluation.refresh_from_db()
    assert evaluation.status == "failed"
