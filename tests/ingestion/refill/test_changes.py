"""A change of model from the publication that names it to the end of its grace period, worked in this process."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from ingestion.models import EmbeddedText, ProviderCall
from ingestion.services.pushes import ingest_text
from ingestion.services.runs import start_run
from kb import leaving, space_changes
from kb.models import Chunk, Document, EmbeddingSpace, KnowledgeBase, SpaceChange
from kb.stores.drift import drift
from tests.ingestion.refill.conftest import refill, vectors_in, work_run

pytestmark = pytest.mark.django_db
State = SpaceChange.State


def change_of(knowledge_base: KnowledgeBase) -> SpaceChange:
    return SpaceChange.objects.filter(knowledge_base=knowledge_base).latest("created_at")


def test_an_empty_knowledge_base_takes_the_new_model_at_once(knowledge_base, other, name_model):
    changed = name_model(knowledge_base, "other")
    assert changed.space == other
    assert not SpaceChange.objects.exists()


def test_the_old_space_answers_until_every_chunk_has_a_vector_in_the_new_one(filled, hashing_model, other, name_model, ask):
    before = ask(filled, "boiler")
    assert before[1] == ["hashing"]
    changed = name_model(filled, "other")
    assert (changed.space, changed.named_space) == (hashing_model.space, other)
    assert ask(filled, "boiler") == before
    change = refill(change_of(filled))
    assert (change.state, change.filled, change.computed, change.too_long) == (State.GRACE, 3, 3, 0)
    assert change.grace_until - change.switched_at == timedelta(days=7)
    texts, models = ask(filled, "boiler")
    assert (texts[0], models) == (before[0][0], ["other"])
    assert KnowledgeBase.objects.get(id=filled.id).space == other
    assert set(Document.objects.values_list("space", flat=True)) == {other.pk}
    assert drift(KnowledgeBase.objects.get(id=filled.id)).is_clean


def test_what_is_sent_is_what_a_run_would_send(filled, other, name_model, source, alice):
    """The line of title and headings included: a run afterwards pays for nothing."""
    name_model(filled, "other")
    refill(change_of(filled))
    calls = ProviderCall.objects.count()
    Document.objects.update(content_hash=None, chunk_fingerprint="", context_fingerprint="")
    run = work_run(start_run(source, user=alice))
    assert (run.status, run.counters["ingested"]) == ("succeeded", 3)
    assert ProviderCall.objects.count() == calls
    assert drift(KnowledgeBase.objects.get(id=filled.id)).is_clean


def test_a_chunk_from_before_its_context_was_kept_gets_it_from_title_and_headings(filled, other, name_model, add_files):
    parts = "\n\n".join(f"## Part {number}\n\n" + f"The handbook says {number} of many things. " * 40 for number in range(4))
    add_files(handbook=f"# Handbook\n\n{parts}")
    kept = dict(Chunk.objects.values_list("id", "context"))
    assert any(kept.values())
    hashes = set(map(bytes, EmbeddedText.objects.values_list("text_hash", flat=True)))
    Chunk.objects.update(context=None)
    name_model(filled, "other")
    refill(change_of(filled))
    assert set(map(bytes, EmbeddedText.objects.filter(space=other).values_list("text_hash", flat=True))) == hashes


def test_documents_that_come_and_go_meanwhile_are_in_both_spaces(filled, hashing_model, other, name_model, add_files, ask, settings):
    name_model(filled, "other")
    settings.ENV = settings.ENV.model_copy(update={"reembed_rate": 1.0})
    change = refill(change_of(filled))
    assert (change.state, change.filled, vectors_in(filled, other)) == (State.FILLING, 1, 1)
    assert change.not_before > timezone.now(), "the rate lets others have the worker meanwhile"
    add_files(dog="# Dog\n\nThe dog barks.", leave="# Leave\n\nForty days of leave a year.")
    assert ask(filled, "dog")[0][0].endswith("The dog barks.")
    settings.ENV = settings.ENV.model_copy(update={"reembed_rate": 0.0})
    SpaceChange.objects.update(not_before=None)
    change = refill(change_of(filled))
    assert change.state == State.GRACE
    assert vectors_in(filled, other) == vectors_in(filled, hashing_model.space) == 4
    texts, models = ask(filled, "dog")
    assert (texts[0].endswith("The dog barks."), models) == (True, ["other"])
    assert "Forty days" in ask(filled, "leave a year")[0][0]


def test_a_run_that_is_under_way_publishes_into_the_space_that_answers_then(filled, hashing_model, other, name_model, ask):
    run = ingest_text(filled, text="The dog barks.", document_name="dog")
    work_run(run, ("extract", "embed"))
    name_model(filled, "other")
    assert refill(change_of(filled)).state == State.GRACE
    run = work_run(run)
    assert (run.status, run.space) == ("succeeded", other)
    assert drift(KnowledgeBase.objects.get(id=filled.id)).is_clean
    assert "barks" in ask(filled, "dog")[0][0]


def test_a_publication_that_meets_the_switch_gives_its_items_back(filled, other, name_model):
    """Between the look at the start of its slice and its transaction."""
    from ingestion.following import SpaceLeft
    from ingestion.models import IngestionRun
    from ingestion.stages.publish import publish_items

    run = ingest_text(filled, text="The dog barks.", document_name="dog")
    work_run(run, ("extract", "embed"))
    run = IngestionRun.objects.select_related("space", "source").get(id=run.id)
    name_model(filled, "other")
    refill(change_of(filled))
    with pytest.raises(SpaceLeft):
        publish_items(run, [])


def test_the_way_back_costs_nothing_and_is_immediate(filled, hashing_model, other, name_model, ask):
    before = ask(filled, "boiler")
    name_model(filled, "other")
    first = refill(change_of(filled))
    calls = ProviderCall.objects.count()
    back = name_model(filled, "hashing")
    assert back.space == hashing_model.space
    assert ask(filled, "boiler") == before
    assert ProviderCall.objects.count() == calls
    first.refresh_from_db()
    assert first.state == State.ROLLED_BACK
    assert change_of(filled).state == State.GRACE, "and the way forth again"
    forth = name_model(filled, "other")
    assert (forth.space, ProviderCall.objects.count()) == (other, calls)


def test_the_way_back_embeds_first_what_was_published_since(filled, hashing_model, other, name_model, add_files, ask):
    name_model(filled, "other")
    refill(change_of(filled))
    add_files(dog="# Dog\n\nThe dog barks.")
    back = name_model(filled, "hashing")
    assert (back.space, ask(filled, "dog")[1]) == (other, ["other"])
    change = refill(change_of(filled))
    assert (change.state, change.filled, change.computed) == (State.GRACE, 1, 1)
    texts, models = ask(filled, "dog")
    assert ("barks" in texts[0], models) == (True, ["hashing"])


def test_naming_the_old_model_again_ends_a_change_that_is_under_way(filled, hashing_model, other, name_model):
    name_model(filled, "other")
    back = name_model(filled, "hashing")
    assert (back.space, back.named_space) == (hashing_model.space, hashing_model.space)
    assert change_of(filled).state == State.ROLLED_BACK
    assert refill(change_of(filled)).filled == 0


def test_a_second_change_supersedes_the_first(filled, hashing_model, other, make_space, name_model, settings):
    third = make_space("third", provider="hashing", dimension=256)
    settings.ENV = settings.ENV.model_copy(update={"reembed_rate": 1.0})  # a page holds one chunk
    name_model(filled, "other")
    first = refill(change_of(filled))
    assert vectors_in(filled, other) == 1
    name_model(filled, "third")
    first.refresh_from_db()
    assert (first.state, change_of(filled).to_space) == (State.SUPERSEDED, third)
    leaving.remove_left_vectors()
    assert vectors_in(filled, other) == 0
    assert vectors_in(filled, hashing_model.space) == 3


def test_another_edit_leaves_a_change_alone(filled, other, name_model):
    name_model(filled, "other")
    change = change_of(filled)
    name_model(filled, "other", description="Edited")
    assert change_of(filled) == change
    space_changes.cancel(KnowledgeBase.objects.get(id=filled.id), by="alice")
    name_model(filled, "other", description="Edited again")
    assert SpaceChange.objects.count() == 1, "nor does it begin one again that somebody stopped"


def test_vectors_of_the_old_model_stay_for_the_grace_period_and_go_then(filled, hashing_model, other, name_model, add_files):
    name_model(filled, "other")
    refill(change_of(filled))
    leaving.remove_left_vectors()
    assert vectors_in(filled, hashing_model.space) == 3
    SpaceChange.objects.update(grace_until=timezone.now() - timedelta(seconds=1))
    leaving.remove_left_vectors()
    assert vectors_in(filled, hashing_model.space) == 0
    assert vectors_in(filled, other) == 3
    assert change_of(filled).state == State.DONE
    with connection.cursor() as cursor:
        cursor.execute("SELECT space FROM embedding_use WHERE kb = %s", [filled.id])
        assert cursor.fetchall() == [(other.pk,)]
    # The way back is a change like any other now; paid texts are still known.
    calls = ProviderCall.objects.count()
    name_model(filled, "hashing")
    assert (refill(change_of(filled)).state, ProviderCall.objects.count()) == (State.GRACE, calls)


def test_another_registration_of_the_same_model_takes_the_vectors_over(filled, hashing_model, make_space, twin_partition, name_model, ask):
    """Compared by provider, model, dimension and settings: nothing is paid."""
    twin = make_space("twin", provider="hashing", dimension=256, pk=twin_partition)
    EmbeddingSpace.objects.filter(pk=twin.pk).update(fingerprint=hashing_model.space.fingerprint)
    before, calls = ask(filled, "boiler"), ProviderCall.objects.count()
    name_model(filled, "twin")
    change = refill(change_of(filled))
    assert (change.state, change.filled, change.computed) == (State.GRACE, 3, 0)
    assert ProviderCall.objects.count() == calls
    assert ask(filled, "boiler") == (before[0], ["twin"])
