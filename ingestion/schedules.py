"""Schedules as rows: the fleet's own clock, and those of sources, which follow the published version.

Rows of django-celery-beat whose name starts with `lectern:` are ours; nobody else writes any, and the admin shows none of its pages. What
they send are wake-ups: whether a source is due is told by its `SourceSchedule`.
"""

import json
from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from config import queues
from ingestion.models import SourceSchedule
from kb import schemas
from kb.models import KnowledgeBase, KnowledgeBaseVersion
from kb.schemas.cron import Schedule, parse_cron

PREFIX = "lectern:"
SOURCE_PREFIX = "lectern:source:"
FIRE_EXPIRY = 300

BEAT_SCHEDULE = {
    "lectern:sweep": ("ingestion.sweep", lambda: settings.ENV.sweep_seconds),
    "lectern:housekeep": ("ingestion.housekeep", lambda: 60.0),
    "lectern:prove-queues": ("ingestion.send_proofs", lambda: 15.0),
}


def ensure_beat_schedule() -> None:
    """Make the beat's own entries what this version needs; entries of an older version that are gone are removed."""
    for name, (task, seconds) in BEAT_SCHEDULE.items():
        interval, _ = IntervalSchedule.objects.get_or_create(
            every=max(1, round(timedelta(seconds=seconds()).total_seconds() * 1000)) * 1000, period=IntervalSchedule.MICROSECONDS
        )
        PeriodicTask.objects.update_or_create(
            name=name,
            defaults={
                "task": task,
                "interval": interval,
                "crontab": None,
                "queue": queues.DEFAULT,
                "priority": queues.INTERACTIVE,
                "expire_seconds": max(5, round(seconds() * 2)),
                "enabled": True,
            },
        )
    ours = PeriodicTask.objects.filter(name__startswith=PREFIX)
    ours.exclude(name__in=BEAT_SCHEDULE).exclude(name__startswith=SOURCE_PREFIX).delete()


def arm_schedules() -> None:
    """Give every knowledge base the schedules of its current version: for versions that were published before schedules fired."""
    active = KnowledgeBase.objects.filter(state=KnowledgeBase.State.ACTIVE, current__isnull=False)
    for identifier in list(active.values_list("id", flat=True)):
        with transaction.atomic():
            knowledge_base = KnowledgeBase.objects.select_for_update(no_key=True).get(id=identifier)
            sync_schedules(KnowledgeBaseVersion.objects.get(id=knowledge_base.current_id))


def sync_schedules(version: KnowledgeBaseVersion) -> None:
    """Make the schedules of a knowledge base those of its current version; inside the publishing transaction.

    A schedule that is new or has changed is due from now on, never for a time before. One that stays keeps its due time, so that a fire
    which was missed is made good whatever is published meanwhile.
    """
    document = schemas.load_stored(version.document)
    wanted = {UUID(source.id): source.cron for source in document.sources if source.enabled and source.cron}
    rows = SourceSchedule.objects.filter(source__knowledge_base=version.knowledge_base_id)
    standing = dict(rows.values_list("source_id", "cron"))
    remove_schedules(standing.keys() - wanted.keys())
    ticking = set(PeriodicTask.objects.filter(name__in=[_beat_name(source) for source in wanted]).values_list("name", flat=True))
    for source, cron in wanted.items():
        schedule = parse_cron(cron)
        if standing.get(source) != cron:
            due = {"cron": cron, "due_at": schedule.next_fire(timezone.now())}
            SourceSchedule.objects.update_or_create(source_id=source, defaults={"organization_id": version.organization_id, **due})
        if standing.get(source) != cron or _beat_name(source) not in ticking:
            _set_beat_row(source, schedule)


def remove_schedules(sources: Iterable[UUID]) -> None:
    """Take away the schedules of sources, if they have any."""
    if sources := list(sources):
        SourceSchedule.objects.filter(source__in=sources).delete()
        _drop_beat_rows(sources)


def _beat_name(source: UUID) -> str:
    return f"{SOURCE_PREFIX}{source}"


def _set_beat_row(source: UUID, schedule: Schedule) -> None:
    """Each with a crontab of its own, so that changing or dropping one never concerns another."""
    _drop_beat_rows([source])
    PeriodicTask.objects.create(
        name=_beat_name(source),
        task="ingestion.fire_schedule",
        args=json.dumps([str(source)]),
        crontab=CrontabSchedule.objects.create(timezone=ZoneInfo("UTC"), **_columns(schedule)),
        queue=queues.DEFAULT,
        expire_seconds=FIRE_EXPIRY,
    )


def _drop_beat_rows(sources: Iterable[UUID]) -> None:
    CrontabSchedule.objects.filter(periodictask__name__in=[_beat_name(source) for source in sources]).delete()  # cascades to the entries


def _columns(schedule: Schedule) -> dict[str, str]:
    """The five fields for beat; one that is longer than its column (values named twice) as the list of its values."""
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    values = (schedule.minutes, schedule.hours, schedule.days, schedule.months, schedule.weekdays)
    columns = {}
    for name, field, numbers in zip(names, schedule.fields, values, strict=True):
        fits = len(field) <= CrontabSchedule._meta.get_field(name).max_length
        columns[name] = field if fits else ",".join(str(number) for number in sorted(numbers))
    return columns
