"""What was asked, what was found, and why nothing was."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from kb.models import ApiKey, TenantRow, User


class Reason(models.TextChoices):
    """Why a retrieval came back empty: exactly one, never silence."""

    NOT_REQUESTED = "not_requested"
    NO_RAG_STEP = "no_rag_step"
    NO_MATCHING_KNOWLEDGE_BASE = "no_matching_knowledge_base"
    KNOWLEDGE_BASE_EMPTY = "knowledge_base_empty"
    NOTHING_INGESTED_YET = "nothing_ingested_yet"
    BELOW_MIN_SCORE = "below_min_score"
    NO_HITS = "no_hits"
    STORE_ERROR = "store_error"
    EMBEDDING_ERROR = "embedding_error"


# A reranker that fails leaves hits, so it is no reason for having none.
RERANK_ERROR = "rerank_error"


class RetrievalTrace(TenantRow):
    """One retrieval: the query, the settings it ran under, hits with all scores, timings, and the reason when empty."""

    query = models.TextField()
    mode = models.CharField(max_length=16)
    knowledge_base_ids = ArrayField(models.UUIDField(), default=list)
    versions = models.JSONField(default=dict, help_text="Knowledge base id to the version number searched under.")
    settings = models.JSONField(default=dict)
    hits = models.JSONField(default=list)
    reason = models.CharField(max_length=40, choices=Reason, blank=True, default="")
    degraded = models.CharField(max_length=40, blank=True, default="")
    error = models.TextField(blank=True, default="")
    timings_ms = models.JSONField(default=dict)
    requested_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    requested_with = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="+", help_text="A key that is nobody's.")
    private = models.BooleanField(default=False, help_text="A private document is among the hits: only who asked may read it.")

    class Meta:
        indexes = [models.Index(fields=["organization", "-created_at"], name="trace_history")]

    def __str__(self) -> str:
        return f"{self.query[:60]} ({self.reason or len(self.hits)})"
