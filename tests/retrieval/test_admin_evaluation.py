"""Judgements and evaluations in the admin: written, taken in, asked for and read by whom it concerns."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from kb import services
from retrieval import jobs
from retrieval.evaluation import judging, running
from retrieval.evaluation.requests import EvaluationInput, ExpectedInput, JudgementInput
from retrieval.models import Evaluation, Judgement, RetrievalTrace
from tests.kb.sessions import staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def document(library):
    return library.add("The boiler stands in the cellar.", title="Heating")


@pytest.fixture
def judgement(actor, library, document) -> Judgement:
    wanted = JudgementInput(question="Where is the boiler?", expected=[ExpectedInput(document=str(document.id), grade=3)])
    return judging.create_judgement(actor, library.knowledge_base, wanted)


def evaluate(actor, library, **values) -> Evaluation:
    evaluation = running.start_evaluation(actor, library.knowledge_base, EvaluationInput(**values), send=False)
    jobs.finish_here("evaluation", evaluation)
    return evaluation


def test_a_judgement_is_written_as_lines(library, document, alice, bob, mallory) -> None:
    add = reverse("admin:retrieval_judgement_add")
    form = {"knowledge_base": library.id, "question": "Where?", "expects": f'{document.id},3,"cellar"\n', "note": ""}
    assert staff(bob).post(add, form).status_code == 403
    assert staff(mallory).post(add, form).status_code in (200, 403)
    assert not Judgement.objects.exists()
    assert staff(alice).post(add, form).status_code == 302
    made = Judgement.objects.get()
    assert made.expected == [{"document": str(document.id), "grade": 3, "quote": "cellar"}]
    page = reverse("admin:retrieval_judgement_change", args=[made.pk])
    assert "Heating (grade 3)" in staff(bob).get(page).content.decode()
    refused = staff(alice).post(page, {**form, "expects": "absent.md,2"})
    assert "no such document" in refused.content.decode()
    assert staff(alice).post(page, {**form, "expects": "0.md,7"}).status_code == 200
    assert staff(alice).post(page, {**form, "question": "Where now?", "expects": "0.md"}).status_code == 302
    made.refresh_from_db()
    assert (made.question, made.expected[0]["grade"]) == ("Where now?", 1)
    assert staff(mallory).get(page).status_code == 302  # as for what is not there
    assert staff(bob).post(reverse("admin:retrieval_judgement_delete", args=[made.pk]), {"post": "yes"}).status_code == 403
    assert staff(alice).post(reverse("admin:retrieval_judgement_delete", args=[made.pk]), {"post": "yes"}).status_code == 302
    assert not Judgement.objects.exists()


def test_lists_are_of_what_may_be_seen(actor, library, judgement, alice, bob, mallory) -> None:
    private = services.create_knowledge_base(actor, document={"name": "Alice's own", "sources": []})
    Judgement.objects.create(organization_id=private.organization_id, knowledge_base=private, question="Mine?", question_hash=b"x")
    evaluate(actor, library)
    seen = {}
    for user in (alice, bob, mallory):
        for name in ("judgement", "evaluation"):
            answer = staff(user).get(reverse(f"admin:retrieval_{name}_changelist"))
            seen[user.username, name] = answer.context["cl"].result_count if answer.status_code == 200 else 0
    assert seen == {
        ("alice", "judgement"): 2, ("alice", "evaluation"): 1,
        ("bob", "judgement"): 1, ("bob", "evaluation"): 1,
        ("mallory", "judgement"): 0, ("mallory", "evaluation"): 0,
    }  # fmt: skip


def test_a_file_comes_in_and_goes_out(library, judgement, alice, mallory) -> None:
    page = reverse("admin:retrieval_judgement_file")
    exported = staff(alice).get(page, {"knowledge_base": library.id, "form": "csv"})
    assert exported.content.decode().splitlines()[1].startswith("Where is the boiler?,")
    Judgement.objects.all().delete()
    file = SimpleUploadedFile("judgements.csv", exported.content)
    assert staff(alice).post(page, {"knowledge_base": library.id, "import": "1", "file": file}).status_code == 302
    assert Judgement.objects.get().question == "Where is the boiler?"
    assert staff(mallory).get(page, {"knowledge_base": library.id, "form": "csv"}).status_code == 404
    broken = SimpleUploadedFile("judgements.csv", b"nothing")
    told = staff(alice).post(page, {"knowledge_base": library.id, "import": "1", "file": broken})
    assert "must name the columns" in told.content.decode()


def test_a_search_is_asked_and_its_hit_judged_with_one_click(library, document, alice, bob, mallory) -> None:
    form = {"query": "boiler", "knowledge_base": library.id, "mode": ""}
    to_trace = staff(bob).post(reverse("admin:retrieval_retrievaltrace_try_search"), form)
    trace = RetrievalTrace.objects.get()
    assert to_trace.url == reverse("admin:retrieval_retrievaltrace_change", args=[trace.pk])
    assert staff(mallory).post(reverse("admin:retrieval_retrievaltrace_try_search"), form).status_code == 404
    assert "Answers" not in staff(bob).get(to_trace.url).content.decode()  # who may not judge sees no buttons
    page = staff(alice).get(to_trace.url).content.decode()
    judge = reverse("admin:retrieval_retrievaltrace_judge", args=[trace.pk])
    assert judge in page
    assert "How this was found" in page
    assert "boiler (in 1, idf 0.29)" in page
    click = {"knowledge_base": library.id, "citation": trace.hits[0]["citation"], "grade": 3}
    staff(bob).post(judge, click)
    assert staff(mallory).post(judge, click).status_code == 404
    assert not Judgement.objects.exists()
    assert staff(alice).post(judge, click).url == to_trace.url
    made = Judgement.objects.get()
    assert (made.question, made.expected[0]["document"]) == ("boiler", str(document.id))


def test_an_evaluation_is_asked_for_and_cancelled(library, judgement, alice, bob) -> None:
    page = reverse("admin:retrieval_evaluation_evaluate")
    assert staff(bob).post(page, {"knowledge_base": library.id, "k": "5"}).status_code == 200
    assert not Evaluation.objects.exists()
    answer = staff(alice).post(page, {"knowledge_base": library.id, "k": "5", "comment": "as it is"})
    evaluation = Evaluation.objects.get()
    assert (answer.status_code, evaluation.settings["k"], evaluation.comment) == (302, 5, "as it is")
    assert "0 of 1 questions were asked" in staff(bob).get(answer.url).content.decode()
    cancel = reverse("admin:retrieval_evaluation_cancel_evaluation", args=[evaluation.pk])
    assert staff(bob).post(cancel).status_code == 404
    staff(alice).post(cancel)
    evaluation.refresh_from_db()
    assert evaluation.status == "cancelled"


def test_figures_over_time_are_a_picture_and_a_table(actor, library, judgement, document, alice) -> None:
    first, second = evaluate(actor, library, comment="before <b>"), evaluate(actor, library, comment="after")
    page = staff(alice).get(reverse("admin:retrieval_evaluation_changelist")).content.decode()
    assert page.count("<svg") == 4  # a legend and three figures
    assert "nDCG@10 over 2 evaluations" in page
    assert "before <b>" not in page
    assert page.count("1.000 / 1.000 / 1.000") >= 6
    details = staff(alice).get(reverse("admin:retrieval_evaluation_change", args=[second.pk])).content.decode()
    assert "1.000 (+0.000)" in details
    assert "1. Heating" in details
    assert "(+0.000)" not in staff(alice).get(reverse("admin:retrieval_evaluation_change", args=[first.pk])).content.decode()
