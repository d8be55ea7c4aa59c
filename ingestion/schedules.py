"""Rows of django-celery-beat that are ours: the fleet's own clock."""

from datetime import timedelta

from django_celery_beat.models import IntervalSchedule, PeriodicTask

from config import queues
from ingestion.tasks import BEAT_SCHEDULE

PREFIX = "lectern:"


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
    PeriodicTask.objects.filter(name__startswith=PREFIX).exclude(name__in=BEAT_SCHEDULE).delete()
