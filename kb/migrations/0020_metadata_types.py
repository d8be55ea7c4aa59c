"""Metadata is JSON that anybody wrote: what of it is a number or a point in time, for filters. Null where it is none; never an error."""

from django.db import migrations

FUNCTIONS = r"""
CREATE FUNCTION metadata_number(held text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN held ~ '^\s*[+-]?(\d{1,100}(\.\d{0,100})?|\.\d{1,100})([eE][+-]?\d{1,2})?\s*$' THEN held::numeric END
$$;

-- Without a zone it is UTC. The pattern keeps out what a cast would take besides: now, infinity, 1/2/2026.
CREATE FUNCTION metadata_moment(held text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET TimeZone = 'UTC' AS $$
BEGIN
    IF held IS NULL OR held !~ '^\s*\d{4}-\d{2}-\d{2}([T ]|\s*$)' THEN
        RETURN NULL;
    END IF;
    RETURN held::timestamptz;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
"""

DROP = """
DROP FUNCTION IF EXISTS metadata_number(text);
DROP FUNCTION IF EXISTS metadata_moment(text);
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0019_words_by_prefix")]

    operations = [migrations.RunSQL(FUNCTIONS, DROP)]
