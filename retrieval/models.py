"""What was asked, what was found, and why nothing was."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from kb.models import ApiKey, KnowledgeBase, TenantRow, User


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


class Judgement(TenantRow):
    """A question, and what a good answer to it holds. `expected` is a list of {document, grade, quote}, as `retrieval.evaluation.judging`
    describes it; a document that is gone stays in it, and is told."""

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    question = models.TextField()
    question_hash = models.BinaryField(max_length=16)
    expected = models.JSONField(default=list)
    note = models.TextField(blank=True, default="")
    author = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    author_name = models.CharField(max_length=200, blank=True, default="")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["knowledge_base", "question_hash"], name="judgement_once")]

    def __str__(self) -> str:
        return self.question[:100]


class Job(TenantRow):
    """Work on a knowledge base that a person asked for and a worker does by slices. Open while `finished_at` is null; whoever holds the
    lease works it, and a lease that ended is anybody's. `attempts` counts leases since the last progress."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLED = "cancelled"

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    version = models.PositiveIntegerField(help_text="Number of the version that was current at the start.")
    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED)
    settings = models.JSONField(default=dict)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, default="")
    notes = models.JSONField(default=list)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    requested_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    requested_name = models.CharField(max_length=200, blank=True, default="")
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["knowledge_base"], condition=models.Q(finished_at=None), name="%(class)s_open_once"),
        ]
        indexes = [models.Index(fields=["organization", "knowledge_base", "-created_at"], name="%(class)s_history")]


class Evaluation(Job):
    """All judgements of a knowledge base asked in several ways. `figures` by way: nDCG, recall and MRR (`retrieval.evaluation.metrics`)."""

    figures = models.JSONField(default=dict)
    comment = models.CharField(max_length=300, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.knowledge_base} v{self.version}, {self.created_at:%Y-%m-%d %H:%M}"


class EvaluatedQuestion(TenantRow):
    """One question of an evaluation, with what was expected when it began. `results` by way, null until it was asked."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="questions")
    place = models.PositiveIntegerField()
    judgement = models.ForeignKey(Judgement, null=True, on_delete=models.SET_NULL, related_name="+")
    question = models.TextField()
    expected = models.JSONField(default=list)
    results = models.JSONField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "place"], name="evaluated_question_once")]

    def __str__(self) -> str:
        return self.question[:100]


class RecallCheck(Job):
    """What a vector search finds beside an exact one, at several shares of the documents. `recall` is the lowest of `levels`."""

    levels = models.JSONField(default=list)
    recall = models.FloatField(null=True)
    suggested_ef = models.PositiveIntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.knowledge_base}, {self.created_at:%Y-%m-%d %H:%M}"
