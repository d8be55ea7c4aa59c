"""Vectors in stores over a network: where they are, and what has to leave. Knowledge bases and spaces are named without foreign keys: rows
outlive them, and triggers write them (migration 0017)."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from kb.models.tenants import Organization


class StoreUse(models.Model):
    """Which store over a network holds vectors of a knowledge base: its type and parameters as they were published, secrets by name."""

    pk = models.CompositePrimaryKey("kb", "space")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    kb = models.UUIDField()
    space = models.BigIntegerField()
    store = models.JSONField()

    class Meta:
        db_table = "store_use"

    def __str__(self) -> str:
        return f"{self.kb} in {self.store.get('type')}"


class StoreRemoval(models.Model):
    """Points that have to leave a store: of chunks that were deleted (by a trigger, in the same transaction), or that were written for
    chunks that never came to be. Without `chunks` the whole knowledge base. Whoever works on it has a lease."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    kb = models.UUIDField()
    space = models.BigIntegerField()
    store = models.JSONField()
    chunks = ArrayField(models.BigIntegerField(), null=True)
    due_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    attempts = models.IntegerField(db_default=0)
    error = models.TextField(db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "store_removal"
        indexes = [
            models.Index(fields=["due_at"], name="store_removal_due"),
            models.Index(fields=["organization", "kb"], name="store_removal_of_kb"),
        ]

    def __str__(self) -> str:
        return f"{'all' if self.chunks is None else len(self.chunks)} of {self.kb}"
