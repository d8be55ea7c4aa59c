"""Schedules follow the published version, and nothing else writes them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib import admin
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, PeriodicTask, PeriodicTasks

from ingestion import housekeeping, schedules
from ingestion.models import SourceSchedule
from kb import services, versioning
from kb.models import Source

pytestmark = pytest.mark.django_db
DAILY = "30 3 * * *"


@pytest.fixture
def publish(knowledge_base, actor):
    """`publish(cron=…)` changes the only source and publishes; `publish(sources=[…])` replaces the list."""

    def change(sources=None, **values):
        knowledge_base.refresh_from_db()
        document = dict(versioning.read(knowledge_base).document)
        document["sources"] = [{**document["sources"][0], **values}] if sources is None else sources
        return versioning.publish(knowledge_base, document=document, expected=knowledge_base.current.number, actor=actor)

    return change


def beat_rows() -> list[PeriodicTask]:
    return list(PeriodicTask.objects.filter(name__startswith=schedules.SOURCE_PREFIX).select_related("crontab"))


def test_a_schedule_comes_with_its_version(publish, source):
    before = timezone.now()
    publish(cron=DAILY)
    row = SourceSchedule.objects.get()
    assert (row.source, row.cron, row.organization_id) == (source, DAILY, source.organization_id)
    assert before < row.due_at <= before + timedelta(days=1)
    assert (row.due_at.hour, row.due_at.minute) == (3, 30)
    (task,) = beat_rows()
    assert (task.name, task.task, task.args) == (f"lectern:source:{source.id}", "ingestion.fire_schedule", f'["{source.id}"]')
    assert (task.queue, task.enabled) == ("default", True)
    assert (task.crontab.minute, task.crontab.hour, task.crontab.day_of_week, str(task.crontab.timezone)) == ("30", "3", "*", "UTC")


def test_beat_reads_it_as_we_do(publish):
    """The row's crontab, asked by beat's own code, is due at the minutes that our reading names."""
    publish(cron="*/20 3-5 1,15 * mon-fri,7")
    (task,) = beat_rows()
    ours = schedules.parse_cron(SourceSchedule.objects.get().cron)
    at = datetime(2026, 3, 1, tzinfo=UTC)
    for _ in range(30):
        following = ours.next_fire(at)
        crontab = task.schedule
        crontab.nowfun = lambda moment=at: moment
        assert at + crontab.remaining_estimate(at) == following
        at = following


def test_an_expression_that_names_a_value_often_fits_the_columns(publish):
    publish(cron="0 3 * * " + ",".join(["mon"] * 40))
    assert beat_rows()[0].crontab.day_of_week == "1"


def test_a_changed_expression_is_due_from_now_on_and_an_unchanged_one_keeps_its_time(publish):
    publish(cron=DAILY)
    missed = timezone.now() - timedelta(days=2)
    SourceSchedule.objects.update(due_at=missed)
    publish(name="renamed")
    assert SourceSchedule.objects.get().due_at == missed
    publish(cron="0 4 * * *")
    assert SourceSchedule.objects.get().due_at > timezone.now()
    assert [task.crontab.hour for task in beat_rows()] == ["4"]
    assert CrontabSchedule.objects.count() == 1


def test_what_did_not_change_does_not_make_beat_read_again(publish):
    publish(cron=DAILY)
    noted = PeriodicTasks.last_change()
    publish(name="renamed")
    assert PeriodicTasks.last_change() == noted
    publish(cron="0 4 * * *")
    assert PeriodicTasks.last_change() > noted


@pytest.mark.parametrize("values", [{"cron": None}, {"enabled": False}, {"sources": []}])
def test_without_cron_disabled_or_removed_it_has_none(publish, values):
    publish(cron=DAILY)
    publish(**values)
    assert not SourceSchedule.objects.exists()
    assert beat_rows() == []
    assert not CrontabSchedule.objects.exists()


def test_a_rollback_restores_it(publish, knowledge_base, actor, source):
    publish(cron=DAILY)
    publish(enabled=False)
    versioning.roll_back(knowledge_base, to=2, expected=3, actor=actor)
    assert SourceSchedule.objects.get().source == source
    assert len(beat_rows()) == 1


def test_a_refused_publication_leaves_everything(publish):
    from config.errors import InvalidInput

    publish(cron=DAILY)
    with pytest.raises(InvalidInput, match=r"sources\[files\].cron"):
        publish(cron="0 0 30 2 *")
    assert SourceSchedule.objects.get().cron == DAILY
    assert len(beat_rows()) == 1


def test_a_deleted_knowledge_base_loses_them(publish, knowledge_base):
    publish(cron=DAILY)
    services.delete_knowledge_base(knowledge_base)
    housekeeping.housekeep()
    assert beat_rows() == []
    assert not Source.objects.exists()


def test_versions_of_an_older_release_are_armed(publish):
    publish(cron=DAILY)
    SourceSchedule.objects.all().delete()
    PeriodicTask.objects.all().delete()
    schedules.ensure_beat_schedule()
    schedules.arm_schedules()
    due = SourceSchedule.objects.get().due_at
    assert due > timezone.now()
    assert len(beat_rows()) == 1
    schedules.ensure_beat_schedule()
    schedules.arm_schedules()
    assert SourceSchedule.objects.get().due_at == due
    assert PeriodicTask.objects.count() == len(schedules.BEAT_SCHEDULE) + 1


def test_no_page_of_the_admin_writes_the_beat_s_rows(client):
    from django.apps import apps

    assert [model for model in admin.site._registry if model._meta.app_label == "django_celery_beat"] == []
    assert apps.is_installed("django_celery_beat")
