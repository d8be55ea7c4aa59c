"""The admin of what goes in: sources with their files, runs with their verdicts, and what the fleet writes about itself."""

from django.contrib import admin
from django_celery_beat.models import ClockedSchedule, SolarSchedule

from ingestion.admin import records, runs, sources

__all__ = ["records", "runs", "sources"]

for unused in (ClockedSchedule, SolarSchedule):  # nothing here is scheduled by the sun or once
    if admin.site.is_registered(unused):
        admin.site.unregister(unused)
