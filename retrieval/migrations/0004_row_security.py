"""Row-level security: traces, judgements and evaluations are seen by their organization alone."""

from django.db import migrations

from config.row_security import protect

TABLES = (
    "retrieval_retrievaltrace",
    "retrieval_judgement",
    "retrieval_evaluation",
    "retrieval_evaluatedquestion",
    "retrieval_recallcheck",
)


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0003_evaluations")]

    operations = [*map(protect, TABLES)]
