"""Vectors in stores over a network: which knowledge bases have some, and what has to leave, noted by triggers in the deleting transaction."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from config.row_security import protect

TRIGGERS = """
-- After DELETE on chunks: their points leave each store that holds some of the knowledge base. Beside chunk_forget, which does the
-- same for what lies in this database.
CREATE FUNCTION chunk_leaves_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO store_removal (organization_id, kb, space, store, chunks, due_at)
    SELECT used.organization_id, used.kb, used.space, used.store, gone.chunks, now()
    FROM (SELECT knowledge_base_id AS kb, array_agg(id) AS chunks FROM removed GROUP BY knowledge_base_id) gone
    JOIN store_use used ON used.kb = gone.kb;
    RETURN NULL;
END $$;
CREATE TRIGGER chunk_leaves_store AFTER DELETE ON kb_chunk REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION chunk_leaves_store();

-- After DELETE on knowledge bases: whatever is left of them.
CREATE FUNCTION knowledge_base_leaves_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO store_removal (organization_id, kb, space, store, chunks, due_at)
    SELECT used.organization_id, used.kb, used.space, used.store, NULL, now() FROM removed JOIN store_use used ON used.kb = removed.id;
    DELETE FROM store_use WHERE kb IN (SELECT id FROM removed);
    RETURN NULL;
END $$;
CREATE TRIGGER knowledge_base_leaves_store AFTER DELETE ON kb_knowledgebase REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION knowledge_base_leaves_store();
"""
DROP = """
DROP TRIGGER knowledge_base_leaves_store ON kb_knowledgebase;
DROP TRIGGER chunk_leaves_store ON kb_chunk;
DROP FUNCTION knowledge_base_leaves_store(), chunk_leaves_store();
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0016_row_security")]

    operations = [
        migrations.CreateModel(
            name="StoreUse",
            fields=[
                ("pk", models.CompositePrimaryKey("kb", "space", blank=True, editable=False, primary_key=True, serialize=False)),
                ("organization", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="kb.organization")),
                ("kb", models.UUIDField()),
                ("space", models.BigIntegerField()),
                ("store", models.JSONField()),
            ],
            options={"db_table": "store_use"},
        ),
        migrations.CreateModel(
            name="StoreRemoval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("organization", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="kb.organization")),
                ("kb", models.UUIDField()),
                ("space", models.BigIntegerField()),
                ("store", models.JSONField()),
                ("chunks", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=None)),
                ("due_at", models.DateTimeField()),
                ("lease_until", models.DateTimeField(null=True)),
                ("attempts", models.IntegerField(db_default=0)),
                ("error", models.TextField(db_default="")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "store_removal",
                "indexes": [
                    models.Index(fields=["due_at"], name="store_removal_due"),
                    models.Index(fields=["organization", "kb"], name="store_removal_of_kb"),
                ],
            },
        ),
        migrations.RunSQL(TRIGGERS, DROP),
        protect("store_use"),
        protect("store_removal"),
    ]
