"""The words of a knowledge base as they are written, so that `connect*` can be asked: a term is a hash of a stem and begins with nothing.

Words come in with a publication, and go with the last chunk of their term. Who goes needs the lock of a knowledge base's words alone, who
comes shares it: else a word that comes while its term goes would be taken along. Nobody waits for it; what stays is found by the drift check.
"""

import django.db.models.deletion
from django.db import migrations, models

from config.row_security import protect

TABLE = """
CREATE TABLE lexical_word (
    organization uuid NOT NULL,
    kb uuid NOT NULL,
    word text COLLATE "C" NOT NULL,
    term integer NOT NULL,
    PRIMARY KEY (kb, word, term)
);
CREATE INDEX lexical_word_term ON lexical_word (kb, term);

CREATE FUNCTION lexical_word_forget() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    gone record;
BEGIN
    FOR gone IN SELECT kb, array_agg(term) AS terms FROM removed GROUP BY kb LOOP
        IF pg_try_advisory_xact_lock(hashtextextended('lexical_word:' || gone.kb, 0)) THEN
            DELETE FROM lexical_word WHERE kb = gone.kb AND term = ANY(gone.terms);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER lexical_word_forget AFTER DELETE ON lexical_term REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION lexical_word_forget();

CREATE FUNCTION lexical_word_clear() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM lexical_word WHERE kb IN (SELECT id FROM removed);
    RETURN NULL;
END $$;
CREATE TRIGGER lexical_word_clear AFTER DELETE ON kb_knowledgebase REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION lexical_word_clear();
"""

DROP = """
DROP TRIGGER IF EXISTS lexical_word_clear ON kb_knowledgebase;
DROP TRIGGER IF EXISTS lexical_word_forget ON lexical_term;
DROP FUNCTION IF EXISTS lexical_word_clear(), lexical_word_forget();
DROP TABLE IF EXISTS lexical_word;
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0018_usage")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(TABLE, DROP)],
            state_operations=[
                migrations.CreateModel(
                    name="LexicalWord",
                    fields=[
                        ("pk", models.CompositePrimaryKey("kb", "word", "term", blank=True, editable=False, primary_key=True, serialize=False)),
                        (
                            "organization",
                            models.ForeignKey(
                                "kb.Organization",
                                db_column="organization",
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                            ),
                        ),
                        ("kb", models.UUIDField()),
                        ("word", models.TextField(db_collation="C")),
                        ("term", models.IntegerField()),
                    ],
                    options={"db_table": "lexical_word"},
                ),
            ],
        ),
        protect("lexical_word", column="organization"),
    ]
