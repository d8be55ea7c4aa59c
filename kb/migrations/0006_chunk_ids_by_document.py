"""The index of chunks by document yields their ids without a look at the rows: a search among documents reads half the pages."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("kb", "0005_documents_have_parents")]
    operations = [
        AddIndexConcurrently("chunk", models.Index(fields=["document", "ordinal"], include=["id"], name="chunk_in_document")),
        RemoveIndexConcurrently("chunk", "chunk_of_document"),
    ]
