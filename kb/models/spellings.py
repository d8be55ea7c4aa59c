"""The words of knowledge bases as they are written, which `kb.stores.spellings` reads and writes by SQL. Text, so not one of the derived
tables: row-level security holds it to whom is served. Its comparisons are leakproof, so the index is used all the same."""
# ruff: noqa: DJ008

from django.db import models


class LexicalWord(models.Model):
    """A word (folded), and the term it is counted as: for questions that name a beginning, and for the parts of compounds."""

    pk = models.CompositePrimaryKey("kb", "word", "term")
    organization = models.ForeignKey(
        "kb.Organization", on_delete=models.DO_NOTHING, related_name="+", db_column="organization", db_constraint=False, db_index=False
    )
    kb = models.UUIDField()
    word = models.TextField(db_collation="C")
    term = models.IntegerField()

    class Meta:
        db_table = "lexical_word"
