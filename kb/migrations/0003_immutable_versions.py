"""A published version is never changed: the database refuses every UPDATE, from `save()`, a queryset or psql."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION lectern_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'A published version cannot be changed; publish a new one.' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER knowledge_base_version_is_immutable BEFORE UPDATE ON kb_knowledgebaseversion
    FOR EACH ROW EXECUTE FUNCTION lectern_refuse_update();
"""
BACKWARD = """
DROP TRIGGER knowledge_base_version_is_immutable ON kb_knowledgebaseversion;
DROP FUNCTION lectern_refuse_update();
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0002_stores")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
