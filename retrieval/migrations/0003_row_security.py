"""Row-level security: traces are seen by their organization alone."""

from django.db import migrations

from config.row_security import protect


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0002_private_traces")]

    operations = [protect("retrieval_retrievaltrace")]
