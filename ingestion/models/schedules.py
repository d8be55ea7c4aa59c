"""When sources run by themselves, and what became of each time."""

from django.db import models
from django.db.models import Q

from ingestion.models.runs import IngestionRun
from kb.models import Organization, Source, TenantRow


class SourceSchedule(models.Model):
    """When a source is due next: made, changed and removed with the version that says so, never by a client.

    The row decides; the beat's message is only a wake-up, which may be lost, expire or come twice.
    """

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    source = models.OneToOneField(Source, primary_key=True, on_delete=models.CASCADE, related_name="+")
    cron = models.CharField(max_length=200, help_text="Five fields, read in UTC.")
    due_at = models.DateTimeField(help_text="The first time that was not fired yet; in the past while it waits to be.")

    class Meta:
        indexes = [
            # The sweep: what is due, of everybody.
            models.Index(fields=["due_at"], name="source_schedule_due"),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.cron}"


class ScheduleFire(TenantRow):
    """One entry of the log of fires. The first for a due time is inserted with the claim of its run, and is unique: two beats cannot
    fire it twice. A run that fails later adds a second entry, which follows the first."""

    class Outcome(models.TextChoices):
        STARTED = "started"
        ALREADY_RUNNING = "already_running"
        SKIPPED = "skipped"
        FAILED = "failed"

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="+", db_index=False)
    due_at = models.DateTimeField(help_text="The minute that the schedule names; the latest of those that passed while nothing fired.")
    outcome = models.CharField(max_length=20, choices=Outcome)
    run = models.ForeignKey(IngestionRun, null=True, on_delete=models.SET_NULL, related_name="+")
    error = models.TextField(blank=True, default="")
    follows = models.OneToOneField("self", null=True, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "due_at"], condition=Q(follows__isnull=True), name="schedule_fire_once"),
        ]
        indexes = [
            # The log of a source, newest first.
            models.Index(fields=["source", "-created_at", "-id"], name="schedule_fire_log"),
            # Collecting old entries, of everybody.
            models.Index(fields=["created_at"], name="schedule_fire_collect"),
        ]

    def __str__(self) -> str:
        return f"{self.source} due {self.due_at:%Y-%m-%d %H:%M} {self.outcome}"
