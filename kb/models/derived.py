"""The tables that `kb.stores` reads and writes by SQL: vectors, words and their statistics.

Their DDL stands in migration 0002 (partitions, triggers, no foreign keys); these classes only let Django know that the
tables exist, so that a test's flush empties them. Nothing else uses them, and nothing shows their rows.
"""
# ruff: noqa: DJ008

from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from kb.models.spaces import DIMENSIONS
from kb.words.hashing import DIMENSION


class Lexical(models.Model):
    """The words of one chunk: `impacts` is its half of BM25, computed with `average`, the length bucket of its time."""

    pk = models.CompositePrimaryKey("kb", "chunk")
    organization = models.UUIDField()
    kb = models.UUIDField()
    chunk = models.BigIntegerField()
    length = models.IntegerField()
    average = models.FloatField()
    terms = ArrayField(models.IntegerField())
    impacts = SparseVectorField(dimensions=DIMENSION)

    class Meta:
        db_table = "lexical"


class LexicalTerm(models.Model):
    """In how many chunks of a knowledge base a term stands, pending deltas apart."""

    pk = models.CompositePrimaryKey("kb", "term")
    kb = models.UUIDField()
    term = models.IntegerField()
    df = models.IntegerField()

    class Meta:
        db_table = "lexical_term"


class LexicalTotal(models.Model):
    """Chunks and words of a knowledge base, pending deltas apart; `average` is the bucket that new rows are computed with."""

    kb = models.UUIDField(primary_key=True)
    organization = models.UUIDField()
    chunks = models.BigIntegerField(default=0)
    length = models.BigIntegerField(default=0)
    average = models.FloatField()

    class Meta:
        db_table = "lexical_total"


class LexicalDelta(models.Model):
    """What one statement added or removed; written by triggers, folded away by `fold_statistics`."""

    organization = models.UUIDField()
    kb = models.UUIDField()
    chunks = models.IntegerField()
    length = models.BigIntegerField()
    terms = ArrayField(models.IntegerField())
    counts = ArrayField(models.IntegerField())

    class Meta:
        db_table = "lexical_delta"


class EmbeddingUse(models.Model):
    """Which spaces hold vectors of a knowledge base: what a removal has to look into, and what keeps a partition alive."""

    pk = models.CompositePrimaryKey("kb", "space")
    organization = models.UUIDField()
    kb = models.UUIDField()
    space = models.BigIntegerField()

    class Meta:
        db_table = "embedding_use"


class Embedding(models.Model):
    pk = models.CompositePrimaryKey("space", "kb", "chunk")
    organization = models.UUIDField()
    space = models.BigIntegerField()
    kb = models.UUIDField()
    chunk = models.BigIntegerField()

    class Meta:
        abstract = True


class Embedding256(Embedding):
    vector = HalfVectorField(dimensions=256)

    class Meta:
        db_table = "embedding_256"


class Embedding384(Embedding):
    vector = HalfVectorField(dimensions=384)

    class Meta:
        db_table = "embedding_384"


class Embedding512(Embedding):
    vector = HalfVectorField(dimensions=512)

    class Meta:
        db_table = "embedding_512"


class Embedding768(Embedding):
    vector = HalfVectorField(dimensions=768)

    class Meta:
        db_table = "embedding_768"


class Embedding1024(Embedding):
    vector = HalfVectorField(dimensions=1024)

    class Meta:
        db_table = "embedding_1024"


class Embedding1536(Embedding):
    vector = HalfVectorField(dimensions=1536)

    class Meta:
        db_table = "embedding_1536"


class Embedding3072(Embedding):
    vector = HalfVectorField(dimensions=3072)

    class Meta:
        db_table = "embedding_3072"


EMBEDDING_TABLES = {
    table._meta.get_field("vector").dimensions: table
    for table in (Embedding256, Embedding384, Embedding512, Embedding768, Embedding1024, Embedding1536, Embedding3072)
}
if set(EMBEDDING_TABLES) != set(DIMENSIONS):
    raise RuntimeError("Every dimension needs a table: add it to DIMENSIONS, here and by a migration.")
