"""A run is dead only when it could have gone on: what waits for its turn, its worker or its provider is left alone."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from ingestion import claims, limiter, sweeping, wakes
from ingestion.models import IngestionRun, ProviderCall, RunItem, WorkerHeartbeat
from ingestion.services.runs import start_run
from kb.embedding import spec_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def embedding(source):
    """A run whose only item waits for its vectors."""
    run = start_run(source)
    IngestionRun.objects.filter(id=run.id).update(listed_at=timezone.now())
    RunItem.objects.create(organization_id=run.organization_id, run=run, key="a", key_hash=b"a", stage="extracted")
    run.refresh_from_db()
    return run


def found(workers: int) -> sweeping.Capacity:
    return sweeping.Capacity({"embed": workers}, sweeping.capacity().worked)


def could_go_on(run: IngestionRun, workers: int) -> bool:
    return sweeping.could_go_on(run, found(workers))


def test_without_a_worker_it_waits(embedding):
    assert not could_go_on(embedding, 0)
    assert could_go_on(embedding, 1)


def test_behind_another_run_it_waits_and_its_own_slice_counts_as_work(embedding):
    other = f"{uuid4()}:{uuid4().hex}"
    wakes.hold("embed", other)
    assert not could_go_on(embedding, 1)
    assert could_go_on(embedding, 2)
    wakes.release("embed", other)
    assert could_go_on(embedding, 1)
    wakes.hold("embed", f"{embedding.id}:{uuid4().hex}")
    assert could_go_on(embedding, 1)


def test_a_pausing_provider_is_waited_for(embedding):
    limiter.pause(spec_of(embedding.space.embedding_model, organization_id=embedding.organization_id), 60)
    assert not could_go_on(embedding, 1)


def test_the_wait_starts_anew_after_a_turn_in_line(embedding):
    sweeping.note_eligibility(embedding, found(1))
    embedding.refresh_from_db()
    assert embedding.eligible_since
    wakes.hold("embed", f"{uuid4()}:{uuid4().hex}")
    sweeping.note_eligibility(embedding, found(1))
    embedding.refresh_from_db()
    assert embedding.eligible_since is None


def test_paid_vectors_of_one_large_document_are_progress(embedding):
    long_ago = timezone.now() - timedelta(hours=1)
    IngestionRun.objects.filter(id=embedding.id).update(progressed_at=long_ago, eligible_since=long_ago)
    RunItem.objects.update(changed_at=long_ago)
    scope = {"organization_id": embedding.organization_id, "space": embedding.space, "run": embedding}
    call = ProviderCall.objects.create(**scope, texts=64, received_at=timezone.now())
    assert claims.reap_dead(embedding.source) == []
    ProviderCall.objects.filter(id=call.id).update(error="The server refuses the credential.")
    assert claims.reap_dead(embedding.source) == [embedding]


def test_an_abandoned_run_keeps_the_error_that_stopped_it(embedding):
    long_ago = timezone.now() - timedelta(hours=1)
    why = "The stage embed stopped with InvalidInput: There is no secret named 'key'."
    IngestionRun.objects.filter(id=embedding.id).update(progressed_at=long_ago, eligible_since=long_ago, error=why)
    RunItem.objects.update(changed_at=long_ago)
    claims.reap_dead(embedding.source)
    embedding.refresh_from_db()
    assert (embedding.status, embedding.error) == ("failed", f"Run abandoned. {why}")


def test_a_sweep_notes_it_for_every_open_run(embedding):
    now = timezone.now()
    WorkerHeartbeat.objects.create(name="embed@here", queues=["embed"], pid=1, started_at=now, seen_at=now)
    sweeping.sweep()
    embedding.refresh_from_db()
    assert embedding.eligible_since
    assert wakes.under_way("embed", embedding.id) == 1


def test_a_run_outlives_a_time_in_which_everything_was_down(embedding):
    """It was eligible when the power went; nobody could have worked it since, and the first sweep afterwards does not know that."""
    now = timezone.now()
    long_ago = now - timedelta(hours=1)
    WorkerHeartbeat.objects.create(name="embed@here", queues=["embed"], pid=1, started_at=now, seen_at=now)
    IngestionRun.objects.filter(id=embedding.id).update(progressed_at=long_ago, eligible_since=long_ago)
    RunItem.objects.update(changed_at=long_ago)
    sweeping.sweep()
    embedding.refresh_from_db()
    assert embedding.is_open
    assert embedding.eligible_since >= now
    IngestionRun.objects.filter(id=embedding.id).update(eligible_since=long_ago)
    sweeping.sweep()  # it was looked at all the time, and nothing came of it
    embedding.refresh_from_db()
    assert embedding.error.startswith("Run abandoned")


def test_two_sweeps_do_not_meet(embedding):
    with wakes.alone("sweep") as first:
        assert first
        sweeping.sweep()
        assert wakes.under_way("embed", embedding.id) == 0
    sweeping.sweep()
    assert wakes.under_way("embed", embedding.id) == 1


def test_without_redis_a_sweep_is_tried_anyway(embedding, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    sweeping.sweep()
    assert not IngestionRun.objects.get(id=embedding.id).eligible_since
