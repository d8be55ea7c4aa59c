"""`manage.py evaluate`: what it prints and what it exits with."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from kb import services
from kb.access import actor_for_user
from kb.models import EmbeddingModel
from retrieval.evaluation import judging
from retrieval.evaluation.requests import ExpectedInput, JudgementInput
from retrieval.models import Evaluation

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("evaluate", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def judged(actor, library):
    document = library.add("The boiler stands in the cellar.")
    wanted = JudgementInput(question="boiler", expected=[ExpectedInput(document=str(document.id))])
    judging.create_judgement(actor, library.knowledge_base, wanted)
    return library


def test_figures_are_printed_and_kept(judged) -> None:
    lines = run("Handbooks", "--comment", "first", "-k", "5").splitlines()
    assert lines[0] == "Handbooks, version 1, 1 questions"
    assert [line.split()[:4] for line in lines[2:]] == [
        [way, "1.0000", "1.0000", "1.0000"] for way in ("vector", "keyword", "hybrid", "own")
    ]
    told = json.loads(run(judged.id, "--json", "--way", "keyword"))
    assert (told["status"], list(told["figures"])) == ("succeeded", ["keyword"])
    assert list(Evaluation.objects.order_by("created_at").values_list("comment", "requested_name")) == [("first", "system"), ("", "system")]


def test_what_cannot_be_done_is_said(judged, other_organization, mallory) -> None:
    with pytest.raises(CommandError, match="no knowledge base"):
        run("Nobody's")
    services.create_knowledge_base(actor_for_user(mallory), document={"name": "Handbooks"})
    with pytest.raises(CommandError, match="Several organizations"):
        run("handbooks")
    EmbeddingModel.objects.filter(name="hashing").update(provider="openai", endpoint="http://127.0.0.1:9/v1")
    with pytest.raises(CommandError, match="evaluation failed: vector: "):
        run(judged.id)
