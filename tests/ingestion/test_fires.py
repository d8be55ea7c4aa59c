"""A due time runs once: not zero times, not twice, and never for a time before its schedule."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from config.tenancy import carried
from ingestion import claims, fires, sweeping, tasks, wakes
from ingestion.models import IngestionRun, ScheduleFire, SourceSchedule
from ingestion.services.runs import start_run
from kb import versioning
from kb.models import Source

pytestmark = pytest.mark.django_db
Outcome = ScheduleFire.Outcome


def minutely(minutes_ago: int):
    return (timezone.now() - timedelta(minutes=minutes_ago)).replace(second=0, microsecond=0)


@pytest.fixture
def publish(knowledge_base, actor):
    def change(**values):
        knowledge_base.refresh_from_db()
        document = dict(versioning.read(knowledge_base).document)
        document["sources"] = [{**document["sources"][0], **values}]
        return versioning.publish(knowledge_base, document=document, expected=knowledge_base.current.number, actor=actor)

    return change


@pytest.fixture
def due(publish, source):
    """A schedule of every minute that was not fired for ten minutes."""
    publish(cron="* * * * *")
    SourceSchedule.objects.update(due_at=minutely(10))
    return source


def log_of(source) -> list[tuple[str, object]]:
    return list(ScheduleFire.objects.filter(source=source).order_by("created_at", "id").values_list("outcome", "run_id"))


def test_a_fire_claims_queues_and_returns(due, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        tasks.fire_schedule(str(due.id))
    run = IngestionRun.objects.get()
    assert (run.source, run.status, run.trigger, run.requested_by, run.version.number) == (due, "queued", "schedule", None, 2)
    assert log_of(due) == [(Outcome.STARTED, run.id)]
    assert wakes.under_way("crawl", run.id) == 1


def test_missed_times_are_one_fire_of_the_latest(due):
    now = timezone.now()
    fires.fire_due()
    fire = ScheduleFire.objects.get()
    assert now - timedelta(minutes=1) <= fire.due_at <= timezone.now()
    assert fire.due_at.second == 0
    assert SourceSchedule.objects.get().due_at > now
    fires.fire_due()
    assert fires.fire(due.id) is None
    assert ScheduleFire.objects.count() == IngestionRun.objects.count() == 1


def test_the_due_time_is_the_schedule_s_and_not_the_message_s(publish, source):
    missed = minutely(7 * 24 * 60 + 90)
    publish(cron=f"{missed.minute} {missed.hour} * * *")
    SourceSchedule.objects.update(due_at=missed)
    assert fires.fire(source.id).due_at == missed + timedelta(days=7)


def test_a_new_schedule_does_not_fire_for_times_before_it(publish, source):
    publish(cron="* * * * *")
    assert fires.fire(source.id) is None
    fires.fire_due()
    assert not ScheduleFire.objects.exists()


def test_the_sweep_fires_what_no_message_came_for(due):
    sweeping.sweep()
    assert [outcome for outcome, _ in log_of(due)] == [Outcome.STARTED]


def test_without_redis_it_fires_too(due, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    sweeping.sweep()
    assert IngestionRun.objects.get().trigger == "schedule"


def test_a_run_in_the_way_is_named_and_the_time_is_done(due):
    holder = start_run(due)
    fires.fire_due()
    assert log_of(due) == [(Outcome.ALREADY_RUNNING, holder.id)]
    assert "under way since" in ScheduleFire.objects.get().error
    claims.finish(holder, status="failed", stop_reason="", error="no")
    assert len(log_of(due)) == 1  # it was not the fire's run
    fires.fire_due()
    assert IngestionRun.objects.count() == 1


def test_a_disabled_source_is_skipped(due):
    Source.objects.update(enabled=False)
    fires.fire_due()
    assert log_of(due) == [(Outcome.SKIPPED, None)]


def test_a_source_that_cannot_be_run_is_a_failure_with_its_sentence(due, settings):
    settings.CRAWLS = {}
    fires.fire_due()
    assert log_of(due) == [(Outcome.FAILED, None)]
    assert "nothing that lists" in ScheduleFire.objects.get().error


def test_a_removed_source_and_a_deleted_knowledge_base_do_not_fire(due, knowledge_base):
    from kb import services

    services.delete_knowledge_base(knowledge_base)
    fires.fire_due()
    assert fires.fire(due.id) is None
    assert not IngestionRun.objects.exists()


def test_a_later_failure_is_a_second_entry_of_the_same_fire(due):
    fires.fire_due()
    run = IngestionRun.objects.get()
    claims.finish(run, status="failed", stop_reason="", error="The site is gone.")
    first, second = ScheduleFire.objects.order_by("created_at", "id")
    assert (second.outcome, second.error, second.due_at, second.follows, second.run) == (
        Outcome.FAILED,
        "The site is gone.",
        first.due_at,
        first,
        run,
    )
    assert first.outcome == Outcome.STARTED


def test_an_abandoned_run_is_such_a_failure_and_a_cancelled_one_is_not(due):
    fires.fire_due()
    long_ago = timezone.now() - timedelta(hours=1)
    IngestionRun.objects.update(eligible_since=long_ago, progressed_at=long_ago)
    claims.reap_dead(due)
    assert [outcome for outcome, _ in log_of(due)] == [Outcome.STARTED, Outcome.FAILED]
    SourceSchedule.objects.update(due_at=minutely(0))
    ScheduleFire.objects.filter(outcome=Outcome.STARTED).update(due_at=minutely(60))
    ScheduleFire.objects.filter(outcome=Outcome.FAILED).update(due_at=minutely(60))
    claims.cancel(fires.fire(due.id).run)
    assert [outcome for outcome, _ in log_of(due)] == [Outcome.STARTED, Outcome.FAILED, Outcome.STARTED]


def test_an_error_of_one_source_stops_no_other_and_keeps_its_time(due, knowledge_base, actor):
    document = dict(versioning.read(knowledge_base).document)
    document["sources"] = [*document["sources"], {"name": "other", "type": "upload", "cron": "* * * * *"}]
    versioning.publish(knowledge_base, document=document, expected=2, actor=actor)
    SourceSchedule.objects.filter(source=due).update(cron="broken")
    other = Source.objects.get(name="other")
    SourceSchedule.objects.filter(source=other).update(due_at=minutely(1))
    fires.fire_due()
    assert log_of(due) == []
    assert SourceSchedule.objects.get(source=due).due_at < timezone.now()
    assert [outcome for outcome, _ in log_of(other)] == [Outcome.STARTED]


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_two_beats_and_a_sweep_at_once_make_one_run(due):
    barrier = Barrier(6)

    def attempt(_: int) -> object:
        try:
            barrier.wait()
            return fires.fire(due.id)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        made = [fire for fire in pool.map(carried(attempt), range(6)) if fire]
    assert len(made) == 1
    assert IngestionRun.objects.count() == ScheduleFire.objects.count() == 1


@pytest.fixture
def deadly_insert():
    """`with deadly_insert(table)`: whoever inserts there loses its connection before the commit, as a process that is killed does."""

    @contextmanager
    def armed(table: str):
        with connections["owner"].cursor() as cursor:
            cursor.execute(
                "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS"
                " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"
            )
            cursor.execute(f"CREATE TRIGGER deadly AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION die()")
        try:
            yield
        finally:
            with connections["owner"].cursor() as cursor:
                cursor.execute("DROP FUNCTION die() CASCADE")

    return armed


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
@pytest.mark.parametrize("table", ["ingestion_ingestionrun", "ingestion_schedulefire"])
def test_a_process_that_dies_in_a_fire_loses_and_doubles_nothing(due, deadly_insert, table):
    with deadly_insert(table):
        with pytest.raises(OperationalError):
            fires.fire(due.id)
        connection.close()
    assert not IngestionRun.objects.exists()
    assert SourceSchedule.objects.get().due_at < timezone.now()
    sweeping.sweep()
    assert [outcome for outcome, _ in log_of(due)] == [Outcome.STARTED]
    assert IngestionRun.objects.count() == 1


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_a_fire_waits_for_a_publication_that_removes_its_source(due, knowledge_base, actor):
    def attempt() -> object:
        try:
            return fires.fire(due.id)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            document = {**versioning.read(knowledge_base).document, "sources": []}
            versioning.publish(knowledge_base, document=document, expected=2, actor=actor)
            firing = pool.submit(carried(attempt))
            with pytest.raises(TimeoutError):
                firing.result(timeout=0.3)
        assert firing.result(timeout=10) is None
    assert not IngestionRun.objects.exists()
