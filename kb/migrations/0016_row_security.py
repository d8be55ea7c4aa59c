"""Row-level security: a transaction sees and writes only what belongs to the organizations that it serves."""

from django.db import migrations

from config.row_security import protect

TABLES = (
    "kb_membership",
    "kb_grant",
    "kb_apikey",
    "kb_idempotencykey",
    "kb_knowledgebase",
    "kb_knowledgebaseversion",
    "kb_source",
    "kb_blob",
    "kb_file",
    "kb_document",
    "kb_chunk",
    "kb_dataset",
    "kb_datasetpart",
    "kb_channel",
    "kb_upload",
)
SHARED = ("kb_secret", "kb_embeddingmodel", "kb_reranker", "kb_servicebinding")


class Migration(migrations.Migration):
    dependencies = [("kb", "0015_rerankers")]

    operations = [
        protect("kb_organization", column="id"),
        *map(protect, TABLES),
        *(protect(table, shared=True) for table in SHARED),
    ]
