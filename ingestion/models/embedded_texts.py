"""The wanted and the paid vectors, and the calls that paid them."""

import numpy as np
from django.db import models
from django.db.models import Q

from kb.models import EmbeddingSpace


def pack_vector(vector: np.ndarray) -> bytes:
    """A vector as the cache keeps it: bytes need no parsing on their way in and out of the database."""
    return vector.astype("<f2").tobytes()


def unpack_vector(stored: bytes) -> np.ndarray:
    """float32 [dimension] of what `pack_vector` made."""
    return np.frombuffer(stored, dtype="<f2").astype(np.float32)


class EmbeddedText(models.Model):
    """One exact text in one space: work queue and cache in one row.

    `vector` is null until paid; the text is dropped when it is. Rows survive reaping, cancelling and generations, and
    are collected 30 days after their last use. Never shared between organizations.
    """

    organization = models.ForeignKey("kb.Organization", on_delete=models.CASCADE, related_name="+", db_index=False)
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.CASCADE, related_name="+", db_index=False)
    text_hash = models.BinaryField(max_length=32, help_text="SHA-256 of the text as sent, with prefix, role and parameters.")
    text = models.TextField(null=True)  # noqa: DJ001 - dropped when the vector is paid
    tokens = models.PositiveIntegerField(default=0)
    vector = models.BinaryField(null=True, help_text="Half precision, little-endian, of length 1. Null until it is paid.")
    not_before = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Leases taken without an answer: its worker died.")
    failures = models.PositiveSmallIntegerField(default=0, help_text="Transient answers of the provider, in a row.")
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="")
    used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "space", "text_hash"], name="embedded_text_once")]
        indexes = [
            # The collector: rows by last use.
            models.Index(fields=["used_at"], name="embedded_text_collect"),
        ]

    def __str__(self) -> str:
        return bytes(self.text_hash).hex()[:16]


class ProviderCall(models.Model):
    """One request to an embedding provider, written before it is sent, so that what a kill repeats can be counted."""

    organization = models.ForeignKey("kb.Organization", on_delete=models.CASCADE, related_name="+", db_index=False)
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey("ingestion.IngestionRun", null=True, on_delete=models.SET_NULL, related_name="+")
    knowledge_base = models.ForeignKey("kb.KnowledgeBase", null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    texts = models.PositiveIntegerField()
    tokens = models.PositiveBigIntegerField(default=0)
    sent_at = models.DateTimeField(auto_now_add=True)
    received_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["organization", "space", "sent_at"], name="provider_call_account")]

    def __str__(self) -> str:
        return f"{self.texts} texts at {self.sent_at:%Y-%m-%d %H:%M:%S}"


class WorkerHeartbeat(models.Model):
    """A worker process that was alive at `seen_at`, written by a thread of its own and not asked over the broker."""

    name = models.CharField(max_length=200, primary_key=True)
    queues = models.JSONField(default=list)
    concurrency = models.PositiveSmallIntegerField(default=1)
    pid = models.PositiveIntegerField()
    rss_bytes = models.BigIntegerField(default=0)
    peak_rss_bytes = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(concurrency__gte=1), name="worker_heartbeat_concurrency")]

    def __str__(self) -> str:
        return self.name


class QueueBeat(models.Model):
    """The end-to-end proof of a queue: beat sent a message, a worker of the queue wrote this row."""

    queue = models.CharField(max_length=50, primary_key=True)
    first_sent_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField()
    received_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.queue
