"""Schedules fire. The log of fires is made anew: nothing wrote it before."""

import django.db.models.deletion
import uuid_utils.compat
from django.db import migrations, models

OUTCOMES = [("started", "Started"), ("already_running", "Already Running"), ("skipped", "Skipped"), ("failed", "Failed")]


class Migration(migrations.Migration):
    dependencies = [
        ("ingestion", "0002_item_failures"),
        ("kb", "0004_blobs_are_touched"),
    ]

    operations = [
        migrations.DeleteModel("ScheduleFire"),
        migrations.CreateModel(
            name="ScheduleFire",
            fields=[
                ("id", models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "due_at",
                    models.DateTimeField(
                        help_text="The minute that the schedule names; the latest of those that passed while nothing fired."
                    ),
                ),
                ("outcome", models.CharField(choices=OUTCOMES, max_length=20)),
                ("error", models.TextField(blank=True, default="")),
                (
                    "organization",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="kb.organization"),
                ),
                (
                    "source",
                    models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="kb.source"),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="ingestion.ingestionrun"
                    ),
                ),
                (
                    "follows",
                    models.OneToOneField(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="ingestion.schedulefire"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("follows__isnull", True)), fields=("source", "due_at"), name="schedule_fire_once"
                    )
                ],
                "indexes": [
                    models.Index(fields=["source", "-created_at", "-id"], name="schedule_fire_log"),
                    models.Index(fields=["created_at"], name="schedule_fire_collect"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SourceSchedule",
            fields=[
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="kb.source",
                    ),
                ),
                ("cron", models.CharField(help_text="Five fields, read in UTC.", max_length=200)),
                (
                    "due_at",
                    models.DateTimeField(help_text="The first time that was not fired yet; in the past while it waits to be."),
                ),
                (
                    "organization",
                    models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="kb.organization"),
                ),
            ],
            options={"indexes": [models.Index(fields=["due_at"], name="source_schedule_due")]},
        ),
    ]
