"""The admin of what goes in: sources with their files and schedules, runs with their verdicts, and what the fleet writes about itself."""

from django.contrib import admin
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

from ingestion.admin import contents, embeddings, records, runs, schedules, sources, verdicts

__all__ = ["contents", "embeddings", "records", "runs", "schedules", "sources", "verdicts"]

# The beat's rows follow published versions; a page to write them would be a door beside those, and would let anybody with it run any task.
for row in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    if admin.site.is_registered(row):
        admin.site.unregister(row)
