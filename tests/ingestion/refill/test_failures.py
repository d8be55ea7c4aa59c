"""A new model that fails leaves the knowledge base with the old one, and says why; a worker that dies loses the batch in flight alone."""

from collections import Counter
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from ingestion import limiter, sweeping, wakes
from ingestion.models import EmbeddedText, ProviderCall
from ingestion.refill import refilling
from ingestion.services.embeddings import reembed, roll_back_model
from kb import space_changes
from kb.models import Chunk, EmbeddingModel, KnowledgeBase, SpaceChange
from tests.ingestion.refill.conftest import refill, vectors_in
from tests.servers.openai_server import Answer, ScriptedServer

pytestmark = pytest.mark.django_db
State = SpaceChange.State
TEXTS = {f"note{number}": f"# Note {number}\n\nThe note with the number {number} says {number * 7919}." for number in range(6)}


@pytest.fixture
def provider():
    with ScriptedServer(dimension=384) as server:
        yield server


@pytest.fixture
def remote(make_space, second_partition, provider):
    """A model behind a server, two texts a request."""
    parameters = {"batch_texts": 2, "timeout": 5}
    return make_space("remote", provider="openai", dimension=384, pk=second_partition, endpoint=provider.endpoint, parameters=parameters)


@pytest.fixture
def changing(knowledge_base, add_files, remote, name_model) -> SpaceChange:
    """Six chunks on their way to the remote model."""
    add_files(**TEXTS)
    name_model(KnowledgeBase.objects.get(id=knowledge_base.id), "remote")
    return SpaceChange.objects.get()


def soon(change: SpaceChange) -> SpaceChange:
    """The next slice, as if the wait were over."""
    SpaceChange.objects.filter(id=change.id).update(not_before=None)
    EmbeddedText.objects.update(not_before=None)
    limiter_free()
    return refill(change)


def limiter_free() -> None:
    from config.redis import redis_client

    for key in redis_client().scan_iter("lectern:pause:*"):
        redis_client().delete(key)


def test_a_key_that_is_refused_ends_the_change_with_the_reason(changing, provider, ask, actor):
    provider.answer_next(Answer(status=401, message="Incorrect API key provided"))
    change = refill(changing)
    assert change.state == State.FAILED
    assert "401" in change.error or "key" in change.error.lower()
    knowledge_base = KnowledgeBase.objects.get(id=change.knowledge_base_id)
    assert ask(knowledge_base, "note 3")[1] == ["hashing"]
    status = reembed(knowledge_base, actor=actor)
    assert (status.reembedded, status.total) == (0, 6)
    assert refill(SpaceChange.objects.latest("created_at")).state == State.GRACE
    assert ask(KnowledgeBase.objects.get(id=knowledge_base.id), "note 3")[1] == ["remote"]


def test_a_provider_that_is_away_is_waited_for(changing, provider, ask):
    provider.answer_next(Answer(status=503))
    change = refill(changing)
    assert (change.state, change.failures) == (State.FILLING, 1)
    assert change.error
    assert change.not_before > timezone.now()
    assert refill(change).failures == 1, "not before its time"
    change = soon(change)
    assert (change.state, change.failures, change.error) == (State.GRACE, 0, "")


def test_one_that_stays_away_ends_it(changing, provider, monkeypatch):
    monkeypatch.setattr(refilling, "MAX_FAILURES", 3)
    provider.answer_next(*[Answer(status=500)] * 3)
    change = changing
    for _ in range(3):
        change = soon(change)
    assert change.state == State.FAILED
    assert "3 times in a row" in change.error


def test_a_text_that_the_model_refuses_is_named_by_its_document(changing, provider, actor):
    """Its batch is sent one by one, so that its neighbour is saved."""
    provider.answer_next(Answer(status=400), Answer(status=400))
    change = refill(changing)
    assert change.state == State.FAILED
    assert "“note" in change.error.lower() or "“Note" in change.error
    assert EmbeddedText.objects.filter(space=change.to_space, vector__isnull=False).count() == 5
    paid = Counter(provider.paid_texts())
    reembed(KnowledgeBase.objects.get(id=change.knowledge_base_id), actor=actor)
    assert refill(SpaceChange.objects.latest("created_at")).state == State.GRACE
    assert len(provider.paid_texts()) == sum(paid.values()) + 1, "what was paid is not paid again"


def test_vectors_of_another_dimension_end_it(changing, provider):
    provider.answer_next(Answer(dimension=256))
    change = refill(changing)
    assert change.state == State.FAILED
    assert "256" in change.error


def test_a_worker_that_dies_loses_the_batch_in_flight_alone(changing, provider, monkeypatch):
    class Killed(BaseException):
        """Nothing is cleaned up after it."""

    real = refilling.pay.__globals__["embed_once"]
    calls = []

    def die(*arguments):
        calls.append(1)
        if len(calls) == 2:
            real(*arguments)  # the provider was paid, and nobody learns of it
            raise Killed
        return real(*arguments)

    monkeypatch.setitem(refilling.pay.__globals__, "embed_once", die)
    for module, name in ((refilling.pay.__globals__, "insist"), (refilling.__dict__, "insist")):
        kept = module[name]
        monkeypatch.setitem(module, name, lambda write, kept=kept: None if len(calls) == 2 else kept(write))
    with pytest.raises(Killed):
        refilling.work(changing.id, f"{changing.id}:{uuid4().hex}")
    monkeypatch.undo()
    change = SpaceChange.objects.get(id=changing.id)
    assert change.lease_token is not None, "as a kill leaves it"
    assert refill(change).filled == 0, "somebody may still be at it"
    long_ago = timezone.now() - timedelta(hours=1)  # the clock of a transaction stands still at its beginning
    SpaceChange.objects.update(lease_until=long_ago)
    EmbeddedText.objects.filter(lease_until__isnull=False).update(lease_until=long_ago)
    assert refill(change).state == State.GRACE
    again = sum(count - 1 for count in Counter(provider.paid_texts()).values())
    assert again == 2, "the two texts of one batch"
    assert ProviderCall.objects.filter(received_at=None).count() == 1


def test_nobody_writes_for_a_change_that_was_cancelled(changing, provider, monkeypatch):
    knowledge_base = KnowledgeBase.objects.get(id=changing.knowledge_base_id)
    real = refilling.pay.__globals__["embed_once"]

    def cancel_meanwhile(*arguments):
        if space_changes.open_change(knowledge_base):
            space_changes.cancel(knowledge_base, by="alice")
        return real(*arguments)

    monkeypatch.setitem(refilling.pay.__globals__, "embed_once", cancel_meanwhile)
    change = refill(changing)
    assert (change.state, change.error, change.filled) == (State.CANCELLED, "Cancelled by alice.", 0)
    assert vectors_in(knowledge_base, change.to_space) == 0
    assert len(provider.requests) == 1, "no other call follows"
    assert EmbeddedText.objects.filter(space=change.to_space, vector__isnull=False).count() == 2, "paid is paid"


def test_a_pausing_provider_is_left_alone(changing, provider):
    from kb.embedding import spec_of

    limiter.pause(spec_of(EmbeddingModel.objects.get(name="remote"), organization_id=changing.organization_id), 30)
    change = refill(changing)
    limiter_free()
    assert (change.state, change.failures, provider.requests) == (State.FILLING, 0, [])


def test_the_sweep_wakes_a_change_whose_message_was_lost(changing):
    from config.redis import redis_client

    redis_client().flushdb()
    sweeping.sweep()
    assert wakes.under_way(refilling.STAGE, changing.id) == 1
    sweeping.sweep()
    assert wakes.under_way(refilling.STAGE, changing.id) == 1


def test_texts_longer_than_the_model_reads_are_cut_and_counted(knowledge_base, add_files, make_space, second_partition, name_model):
    add_files(long="# Long\n\n" + " ".join(f"word{number}" for number in range(120)))
    space = make_space("short", provider="hashing", dimension=384, pk=second_partition)
    EmbeddingModel.objects.filter(name="short").update(max_input_tokens=20)
    name_model(KnowledgeBase.objects.get(id=knowledge_base.id), "short")
    change = refill(SpaceChange.objects.get())
    assert (change.state, change.too_long) == (State.GRACE, Chunk.objects.count())
    assert vectors_in(change.knowledge_base, space) == Chunk.objects.count()


def test_a_rollback_of_a_failed_change_names_the_old_model_again(changing, provider, actor, hashing_model):
    provider.answer_next(Answer(status=401))
    refill(changing)
    knowledge_base = KnowledgeBase.objects.get(id=changing.knowledge_base_id)
    roll_back_model(knowledge_base, actor=actor)
    knowledge_base.refresh_from_db()
    assert knowledge_base.named_space == knowledge_base.space == hashing_model.space
    assert knowledge_base.current.document["embedding_model"] == "hashing"


def test_all_vectors_are_computed_anew_where_that_is_asked(filled, hashing_model, actor, ask):
    """Though nothing has changed: a provider may have changed behind its name."""
    before = ask(filled, "boiler")
    asked = ProviderCall.objects.count()
    assert reembed(filled, actor=actor).reembedded == 3
    assert not SpaceChange.objects.exists(), "nothing is missing"
    assert reembed(filled, actor=actor, anew=True).reembedded == 0
    change = refill(SpaceChange.objects.get())
    assert (change.state, change.filled, change.computed) == (State.DONE, 3, 3)
    assert ProviderCall.objects.count() > asked
    assert vectors_in(filled, hashing_model.space) == 3
    assert ask(filled, "boiler") == before
