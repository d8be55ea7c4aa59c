"""One run a source, whatever races, and nobody writes after losing it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection, transaction
from django.utils import timezone

from config.errors import Conflict
from config.redis import redis_client
from config.tenancy import carried
from ingestion import claims
from ingestion.models import IngestionRun, RunItem
from ingestion.services import runs


def claim(source):
    knowledge_base = source.knowledge_base
    return claims.claim(source, version=knowledge_base.current, space=knowledge_base.space)


@pytest.mark.django_db
def test_a_second_claim_names_the_first(source):
    first = claim(source)
    with pytest.raises(Conflict) as refused:
        claim(source)
    assert refused.value.extra["run_id"] == str(first.id)


@pytest.mark.django_db
def test_a_finished_run_frees_its_source(source):
    first = claim(source)
    assert claims.finish(first, status="succeeded", stop_reason="completed")
    assert claim(source).id != first.id


@pytest.mark.django_db
def test_pushes_neither_wait_nor_block(source):
    claim(source)
    for _ in range(2):
        claims.claim(source, kind="push", version=None, space=None)
    assert IngestionRun.objects.filter(source=source, finished_at=None).count() == 3


@pytest.mark.django_db
def test_finishing_happens_once(source):
    run = claim(source)
    assert claims.finish(run, status="succeeded", stop_reason="completed")
    assert not claims.finish(run, status="failed", stop_reason="")
    run.refresh_from_db()
    assert run.status == "succeeded"


@pytest.mark.django_db
def test_a_run_that_lost_its_claim_writes_nothing(source):
    run = claim(source)
    claims.cancel(run)
    with pytest.raises(claims.ClaimLost), claims.writing(run):
        RunItem.objects.create(run=run, organization=run.organization, key="a", key_hash=b"a")
    assert not RunItem.objects.filter(run=run).exists()


@pytest.mark.django_db
def test_a_disabled_source_is_not_run(source):
    source.enabled = False
    with pytest.raises(Conflict, match="disabled"):
        runs.start_run(source)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("idle", "eligible", "reaped"),
    [
        (timedelta(minutes=16), timedelta(minutes=16), True),
        (timedelta(minutes=16), None, False),  # it only waits: no worker, or its turn
        (timedelta(minutes=16), timedelta(minutes=5), False),  # workers came back five minutes ago
        (timedelta(minutes=14), timedelta(minutes=60), False),  # it made progress since
    ],
)
def test_only_a_run_that_could_have_worked_is_reaped(source, idle, eligible, reaped):
    run = claim(source)
    now = timezone.now()
    IngestionRun.objects.filter(id=run.id).update(progressed_at=now - idle, eligible_since=now - eligible if eligible else None)
    assert [entry.id for entry in claims.reap_dead(source)] == ([run.id] if reaped else [])
    run.refresh_from_db()
    assert (run.status, run.error) == (("failed", "Run abandoned") if reaped else ("queued", ""))


@pytest.mark.django_db
def test_a_dead_run_gives_way_to_the_next_claim(source):
    dead = claim(source)
    long_ago = timezone.now() - timedelta(hours=1)
    IngestionRun.objects.filter(id=dead.id).update(progressed_at=long_ago, eligible_since=long_ago)
    assert claim(source).id != dead.id


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
@pytest.mark.parametrize("gate", ["working", "flushed", "out of reach"])
def test_of_many_threads_one_wins(source, settings, gate):
    if gate == "out of reach":
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
    threads = 8
    barrier = Barrier(threads)

    def attempt(_: int) -> str:
        try:
            barrier.wait()
            if gate == "flushed":
                redis_client().flushdb()
            return str(claim(source).id)
        except Conflict as refused:
            return f"refused {refused.extra.get('run_id')}"
        finally:
            connection.close()

    for _ in range(3):
        with ThreadPoolExecutor(threads) as pool:
            answers = list(pool.map(carried(attempt), range(threads)))
        winners = [answer for answer in answers if not answer.startswith("refused")]
        assert len(winners) == 1
        assert {answer for answer in answers if answer.startswith("refused")} <= {f"refused {winners[0]}", "refused None"}
        claims.finish(IngestionRun.objects.get(id=winners[0]), status="succeeded", stop_reason="completed")


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_closing_waits_for_a_write_under_way_and_stops_the_next(source):
    run = claim(source)

    def cancel() -> bool:
        try:
            return claims.cancel(run)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with claims.writing(run):
            closing = pool.submit(carried(cancel))
            RunItem.objects.create(run=run, organization=run.organization, key="a", key_hash=b"a", changed_at=timezone.now())
            assert not closing.done()
        assert closing.result(timeout=10)
    run.refresh_from_db()
    assert run.counters["found"] in (0, 1)
    with pytest.raises(claims.ClaimLost), claims.writing(run), transaction.atomic():
        pass


@pytest.mark.django_db
def test_the_gate_stands_in_redis_for_a_lease(source, settings):
    settings.ENV = settings.ENV.model_copy(update={"lease_seconds": 7.5})
    run = claim(source)
    key = f"lectern:run:{source.id}"
    assert redis_client().get(key) == str(run.claim_token).encode()
    assert 6 <= redis_client().ttl(key) <= 8
    redis_client().expire(key, 2)
    claims.renew_gate(run)
    assert redis_client().ttl(key) > 6


@pytest.mark.django_db
def test_a_run_that_nobody_watched_during_an_outage_is_not_reaped_by_who_comes_first(source):
    run = claim(source)
    before = timezone.now() - timedelta(hours=1)
    stale = {"eligible_since": before, "eligible_at": before, "progressed_at": before}
    IngestionRun.objects.filter(id=run.id).update(**stale)
    assert claims.reap_dead(source) == []  # everything was down since then
    IngestionRun.objects.filter(id=run.id).update(**stale | {"eligible_at": timezone.now()})
    assert claims.reap_dead(source) == [run]
