"""A blob that loses a reference is touched, so that the collector's 24 hours count from then: a backup that copies files after
the database's dump still finds them."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION lectern_touch_blob() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'kb_file' THEN
        UPDATE kb_blob SET touched_at = now() WHERE id = OLD.blob_id;
    ELSIF TG_OP = 'DELETE' OR NEW.markdown_id IS DISTINCT FROM OLD.markdown_id THEN
        UPDATE kb_blob SET touched_at = now() WHERE id = OLD.markdown_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER file_touches_blob AFTER DELETE ON kb_file FOR EACH ROW EXECUTE FUNCTION lectern_touch_blob();
CREATE TRIGGER document_touches_blob AFTER DELETE ON kb_document
    FOR EACH ROW WHEN (OLD.markdown_id IS NOT NULL) EXECUTE FUNCTION lectern_touch_blob();
CREATE TRIGGER document_leaves_blob AFTER UPDATE OF markdown_id ON kb_document
    FOR EACH ROW WHEN (OLD.markdown_id IS NOT NULL AND OLD.markdown_id IS DISTINCT FROM NEW.markdown_id) EXECUTE FUNCTION lectern_touch_blob();
"""
BACKWARD = """
DROP TRIGGER document_leaves_blob ON kb_document;
DROP TRIGGER document_touches_blob ON kb_document;
DROP TRIGGER file_touches_blob ON kb_file;
DROP FUNCTION lectern_touch_blob();
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0003_immutable_versions")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
