"""Publishing: immutable numbered versions under a stable identity."""

from dataclasses import replace

import pytest
from django.db import DatabaseError, transaction

from config.errors import Conflict, InvalidInput, StaleVersion
from kb import schemas, services, versioning
from kb.models import KnowledgeBaseVersion, Source

pytestmark = pytest.mark.django_db


def change(knowledge_base, **values):
    return {**versioning.read(knowledge_base).document, **values}


def test_publish_makes_the_next_version_and_keeps_the_old_one(knowledge_base, actor):
    versioning.publish(knowledge_base, document=change(knowledge_base, description="second"), expected=1, actor=actor)
    assert knowledge_base.current.number == 2
    assert versioning.read(knowledge_base, 1).document["description"] == ""
    assert versioning.read(knowledge_base, 2).document["description"] == "second"


def test_a_stale_edit_is_refused_with_both_numbers(knowledge_base, actor):
    versioning.publish(knowledge_base, document=change(knowledge_base, description="second"), expected=1, actor=actor)
    with pytest.raises(StaleVersion) as refused:
        versioning.publish(knowledge_base, document=change(knowledge_base, description="third"), expected=1, actor=actor)
    assert refused.value.extra == {"expected": 1, "current": 2}
    assert KnowledgeBaseVersion.objects.filter(knowledge_base=knowledge_base).count() == 2


def test_a_version_cannot_be_changed(knowledge_base):
    version = versioning.read(knowledge_base)
    version.comment = "later"
    with pytest.raises(DatabaseError, match="cannot be changed"), transaction.atomic():
        version.save()
    with pytest.raises(DatabaseError, match="cannot be changed"), transaction.atomic():
        KnowledgeBaseVersion.objects.filter(id=version.id).update(comment="later")


def test_the_default_model_is_written_into_the_version(knowledge_base, hashing_model):
    assert versioning.read(knowledge_base).document["embedding_model"] == "hashing"
    assert knowledge_base.space == hashing_model.space


def test_a_source_keeps_its_row_when_it_is_renamed_and_leaves_when_it_is_dropped(knowledge_base, actor, source):
    entry = versioning.read(knowledge_base).document["sources"][0]
    versioning.publish(knowledge_base, document=change(knowledge_base, sources=[{**entry, "name": "papers"}]), expected=1, actor=actor)
    source.refresh_from_db()
    assert (source.name, source.state) == ("papers", "active")
    versioning.publish(knowledge_base, document=change(knowledge_base, sources=[]), expected=2, actor=actor)
    source.refresh_from_db()
    assert source.state == Source.State.REMOVING


def test_rollback_publishes_the_old_document_again(knowledge_base, actor):
    versioning.publish(knowledge_base, document=change(knowledge_base, description="second"), expected=1, actor=actor)
    rolled = versioning.roll_back(knowledge_base, to=1, expected=2, actor=actor)
    assert (rolled.number, rolled.document["description"]) == (3, "")


def test_two_knowledge_bases_cannot_share_a_name(knowledge_base, actor):
    with pytest.raises(Conflict, match="already a knowledge base named 'handbooks'"):
        services.create_knowledge_base(actor, document={"name": "handbooks"})


def test_a_duplicate_has_new_ids_and_no_files(knowledge_base, actor, source):
    copied = services.duplicate_knowledge_base(actor, knowledge_base, name="Copy")
    twin = Source.objects.get(knowledge_base=copied)
    assert twin.id != source.id
    assert not twin.documents.exists()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"name": ""}, "name"),
        ({"name": "x", "colour": "red"}, "colour"),
        ({"name": "x", "embedding_model": "nobody"}, "no registered model 'nobody'"),
        ({"name": "x", "chunking": {"target_tokens": 100, "overlap": 100}}, "overlap"),
    ],
)
def test_a_document_that_does_not_hold_is_refused_by_path(actor, hashing_model, document, message):
    with pytest.raises(InvalidInput) as refused:
        services.create_knowledge_base(actor, document=document)
    assert message in f"{refused.value.message} {refused.value.extra}"


def test_a_reranker_that_is_not_there_is_refused_and_not_ignored(knowledge_base, actor):
    with pytest.raises(InvalidInput, match="is no reranker of this installation"):
        versioning.publish(knowledge_base, document=change(knowledge_base, retrieval={"rerank": "x"}), expected=1, actor=actor)


def test_a_tokenizer_that_is_not_installed_is_refused_before_a_run_meets_it():
    lacking = replace(versioning.rules(), known_tokenizers=frozenset())
    document = {"name": "Handbooks", "chunking": {"tokenizer": "cl100k_base"}}
    with pytest.raises(InvalidInput, match="needs the package bpe-openai"):
        schemas.load(document, rules=lacking)
    assert schemas.load_stored(document).chunking.tokenizer == "cl100k_base"
