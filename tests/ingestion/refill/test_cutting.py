"""Settings of cutting that change: each document answers as it is until it is cut anew, so nothing is ever unanswered."""

import pytest

from ingestion.models import IngestionRun
from ingestion.services.embeddings import reembed
from ingestion.stages import publish
from kb import versioning
from kb.embedding_status import look
from kb.models import Chunk, KnowledgeBase
from kb.stores.drift import drift
from tests.ingestion.refill.conftest import work_run

pytestmark = pytest.mark.django_db
WORDS = ("anchor", "boiler", "cellar", "dynamo")


@pytest.fixture
def cut(knowledge_base, add_files) -> KnowledgeBase:
    add_files(**{word: f"# {word}\n\n" + "\n\n".join(f"The {word} has part {part} of forty." * 3 for part in range(12)) for word in WORDS})
    return KnowledgeBase.objects.get(id=knowledge_base.id)


def test_documents_are_cut_anew_one_by_one_while_all_of_them_answer(cut, name_model, ask, actor, monkeypatch):
    before = Chunk.objects.filter(knowledge_base=cut).count()
    assert not look(cut).stale
    name_model(cut, "hashing", chunking={"strategy": "structure", "target_tokens": 40, "overlap": 0, "min_chars": 20})
    cut = KnowledgeBase.objects.get(id=cut.id)
    status = look(cut)
    assert (status.stale, status.outdated.documents, status.outdated.of) == (True, 4, 4)
    assert "4 of 4 documents were cut under other settings" in status.reason
    reembed(cut, actor=actor)
    run = IngestionRun.objects.filter(finished_at=None).get()
    assert run.trigger == "change"
    monkeypatch.setattr(publish, "BATCH", 1)
    counted = []

    def publish_and_look(*arguments, real=publish.publish_items):
        real(*arguments)
        counted.append(look(cut).outdated.documents)
        for word in WORDS:
            assert any(word in text for text in ask(cut, word)[0]), f"{word} is unanswered after {len(counted)} documents"

    monkeypatch.setattr(publish, "publish_items", publish_and_look)
    assert work_run(run).status == "succeeded"
    assert counted == [3, 2, 1, 0]
    assert not look(cut).stale
    assert Chunk.objects.filter(knowledge_base=cut).count() > before
    assert drift(cut).is_clean


def test_the_way_back_to_the_old_cuts_pays_for_nothing(cut, name_model, actor):
    from ingestion.models import ProviderCall

    first = versioning.read(cut).number
    name_model(cut, "hashing", chunking={"strategy": "structure", "target_tokens": 40, "overlap": 0, "min_chars": 20})
    reembed(KnowledgeBase.objects.get(id=cut.id), actor=actor)
    work_run(IngestionRun.objects.filter(finished_at=None).get())
    paid = ProviderCall.objects.count()
    versioning.roll_back(cut, to=first, expected=first + 1, actor=actor)
    reembed(KnowledgeBase.objects.get(id=cut.id), actor=actor)
    work_run(IngestionRun.objects.filter(finished_at=None).get())
    assert not look(KnowledgeBase.objects.get(id=cut.id)).stale
    assert ProviderCall.objects.count() == paid
