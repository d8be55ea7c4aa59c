"""Row-level security: runs, their items and what was paid for are seen by their organization alone."""

from django.db import migrations

from config.row_security import protect

TABLES = (
    "ingestion_ingestionrun",
    "ingestion_runitem",
    "ingestion_crawledhost",
    "ingestion_recognizedpart",
    "ingestion_embeddedtext",
    "ingestion_providercall",
    "ingestion_sourceschedule",
    "ingestion_schedulefire",
)


class Migration(migrations.Migration):
    dependencies = [("ingestion", "0009_recognized_parts")]

    operations = [*map(protect, TABLES)]
