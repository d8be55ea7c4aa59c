"""A run: the claim on a source, its phase, and its outcome."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from kb.models import EmbeddingSpace, KnowledgeBase, KnowledgeBaseVersion, Source, TenantRow, User


class IngestionRun(TenantRow):
    """One run over a source. The partial unique index on open runs *is* the claim.

    ```
    queued ──▶ running ──▶ succeeded | partial | failed | needs_confirmation
       └──────────┴──────▶ cancelled (by a person or a lost source) | failed ("Run abandoned")
    ```

    Kinds: `ingest` claims the source; `maintenance` (purge, confirmed deletion) claims it and is hidden from history;
    `push` (direct ingest, single documents) is claimed per document and neither waits for nor blocks the others.
    Writers of items hold this row `FOR SHARE` and never update it: an update after the share lock deadlocks. Only
    `ingestion.claims`, the crawl's lease and `finish` update it.
    """

    class Kind(models.TextChoices):
        INGEST = "ingest"
        MAINTENANCE = "maintenance"
        PUSH = "push"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        PARTIAL = "partial"
        FAILED = "failed"
        CANCELLED = "cancelled"
        NEEDS_CONFIRMATION = "needs_confirmation"

    class StopReason(models.TextChoices):
        COMPLETED = "completed"
        PAGE_LIMIT = "page_limit"
        FETCH_LIMIT = "fetch_limit"
        BYTE_LIMIT = "byte_limit"
        TIME_LIMIT = "time_limit"
        SEGMENT_LIMIT = "segment_limit"
        BUDGET_EXHAUSTED = "budget_exhausted"
        CANCELLED = "cancelled"

    class Trigger(models.TextChoices):
        MANUAL = "manual"
        SCHEDULE = "schedule"
        API = "api"
        CHANGE = "change"

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="runs")
    version = models.ForeignKey(KnowledgeBaseVersion, null=True, on_delete=models.CASCADE, related_name="+")
    space = models.ForeignKey(EmbeddingSpace, null=True, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.INGEST)
    trigger = models.CharField(max_length=16, choices=Trigger, default=Trigger.MANUAL)
    status = models.CharField(max_length=20, choices=Status, default=Status.QUEUED)
    stop_reason = models.CharField(max_length=20, choices=StopReason, blank=True, default="")
    claim_token = models.UUIDField(help_text="Every writer carries it; a run that lost its claim writes nothing.")
    requested_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    requested_name = models.CharField(
        max_length=300, blank=True, default="", help_text="Who asked for it, in words: a person or an API key."
    )
    confirms = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="+", help_text="Of a confirmed deletion: the run that planned it."
    )
    listed_at = models.DateTimeField(null=True, help_text="When the listing (or crawl) was complete.")
    slices_worked_seconds = models.FloatField(default=0, help_text="Crawl and listing time, held against the time budget.")
    crawl_state = models.JSONField(default=dict, help_text="Cursor of the listing; robots and sitemap state of a crawl.")
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    progressed_at = models.DateTimeField(auto_now_add=True, help_text="Last committed progress of the run row itself.")
    eligible_since = models.DateTimeField(null=True, help_text="Since when workers could have advanced it; null while it waits.")
    eligible_at = models.DateTimeField(null=True, help_text="When that was last looked at: what nobody watched proves nothing.")
    finished_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="")
    warnings = models.JSONField(default=list)
    counters = models.JSONField(default=dict, help_text="Aggregates of its items, written once when it closes.")
    planned_removals = models.JSONField(default=list, help_text="Document ids that a braked deletion would remove.")
    answer = models.JSONField(null=True, help_text="What became of its plan: decision, by whom, when, and the run that removes.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source"],
                condition=Q(finished_at__isnull=True) & ~Q(kind="push"),
                name="run_claims_source",
            ),
        ]
        indexes = [
            # History of a source, newest first.
            models.Index(fields=["source", "-created_at"], name="run_history"),
            # sweep: every open run.
            models.Index(fields=["organization", "created_at"], condition=Q(finished_at__isnull=True), name="run_open"),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.created_at:%Y-%m-%d %H:%M} {self.status}"

    @property
    def is_open(self) -> bool:
        return self.finished_at is None

    @property
    def started_by(self) -> str:
        """A person or an API key, in words; "" for what starts by itself."""
        return self.requested_name or (self.requested_by.get_username() if self.requested_by else "")


class RunItem(models.Model):
    """One URL or file of one run: frontier entry, work item and verdict in one row.

    Stages: `found` (to be fetched) → `fetched` (to be extracted and chunked) → `extracted` (waits for vectors) →
    `embedded` (to be published) → `done`. A verdict is set exactly when the stage becomes `done`. Where text has to be recognized,
    `fetched` leads to `parted` (waits for its parts: pages, pictures, speech) and back, now with their Markdown.
    `passages` holds spans into the stored Markdown with the hash of the text to embed: nothing half-made stands in a
    vector or word table.
    """

    class Stage(models.TextChoices):
        FOUND = "found"
        FETCHED = "fetched"
        PARTED = "parted"
        EXTRACTED = "extracted"
        EMBEDDED = "embedded"
        DONE = "done"

    class Verdict(models.TextChoices):
        INGESTED = "ingested"
        UNCHANGED = "unchanged"
        SKIPPED = "skipped"
        FAILED = "failed"
        REMOVED = "removed"

    class Via(models.TextChoices):
        START = "start"
        LINK = "link"
        SITEMAP = "sitemap"
        REDIRECT = "redirect"
        CANONICAL = "canonical"

    organization = models.ForeignKey("kb.Organization", on_delete=models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey(IngestionRun, on_delete=models.CASCADE, related_name="items", db_index=False)
    # No constraint and no cascade: deleting a document would then lock items after the document, against the order of locks.
    # The id of a deleted document stays; whoever looks it up finds nothing, and the item ends `superseded`.
    document = models.ForeignKey(
        "kb.Document", null=True, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    key = models.CharField(max_length=8192)
    key_hash = models.BinaryField(max_length=16)
    url = models.CharField(max_length=8192, blank=True, default="", help_text="The address as published: what is requested.")
    via = models.CharField(max_length=12, choices=Via, blank=True, default="", help_text="How a crawl came to it.")
    found_on = models.BigIntegerField(null=True, help_text="The item of the page that led to it; no constraint, it may be gone.")
    title = models.CharField(max_length=300, blank=True, default="")
    depth = models.PositiveSmallIntegerField(default=0)
    stage = models.CharField(max_length=16, choices=Stage, default=Stage.FOUND)
    verdict = models.CharField(max_length=16, choices=Verdict, blank=True, default="")
    reason = models.CharField(max_length=40, blank=True, default="", help_text="A code: no_text, encrypted, robots, superseded …")
    error = models.TextField(blank=True, default="")
    warnings = models.JSONField(default=list)
    epoch = models.BigIntegerField(default=0, help_text="The document's epoch when this item was made.")
    blob = models.ForeignKey("kb.Blob", null=True, on_delete=models.PROTECT, related_name="+")
    markdown = models.ForeignKey("kb.Blob", null=True, on_delete=models.PROTECT, related_name="+")
    content_hash = models.BinaryField(max_length=32, null=True)
    response = models.JSONField(null=True, help_text="Of a crawl: status, validators, media type, where a redirect or canonical leads.")
    requests = models.PositiveSmallIntegerField(default=0, help_text="How often it was asked for over the network.")
    recipe = models.CharField(max_length=32, blank=True, default="", db_default="", help_text="Of the parts that it waits for.")
    parts = models.PositiveIntegerField(default=0, db_default=0, help_text="How many parts it has: pages, pictures, stretches of speech.")
    extracted = models.JSONField(null=True, help_text="Title, type, language, metadata, page spans of the extraction.")
    passages = models.JSONField(null=True, help_text="[start, end, heading path, tokens, table header], in order")
    text_hashes = ArrayField(models.BinaryField(max_length=32), null=True, help_text="What it waits for, in the order of passages.")
    fingerprints = models.JSONField(default=dict)
    policy = models.JSONField(null=True, help_text="The merged ingest policy of a file of a channel, that it is worked by.")
    not_before = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Leases taken and neither used nor given back: its worker died.")
    failures = models.PositiveSmallIntegerField(default=0, help_text="Slices that stopped with an error of ours, in a row.")
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    chunks = models.PositiveIntegerField(default=0)
    embeddings_computed = models.PositiveIntegerField(default=0)
    embeddings_reused = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now_add=True, help_text="Last committed progress of the item.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "key_hash"], name="run_item_once"),
            models.CheckConstraint(
                condition=(Q(stage="done") & ~Q(verdict="")) | (~Q(stage="done") & Q(verdict="")), name="run_item_verdict_when_done"
            ),
        ]
        indexes = [
            # The next eligible rows of a run and stage, in the order of a crawl. `stage` moves five times in a row's life, so leases are
            # left out.
            models.Index(fields=["run", "stage", "depth", "id"], condition=~Q(stage="done"), name="run_item_open"),
            # Verdicts of a run, by kind.
            models.Index(fields=["run", "verdict", "id"], condition=Q(stage="done"), name="run_item_verdicts"),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.stage} {self.verdict}"

    @property
    def file_name(self) -> str:
        """What its bytes are called, whatever their title; what is no file is called by its key."""
        file = self.document.file if self.document else None
        return file.name if file else self.key

    @property
    def validators(self) -> dict[str, str]:
        """What a web server said to ask with next time; they replace the stored ones with every download."""
        response = self.response or {}
        return {"etag": response.get("etag", "")[:1024], "last_modified": response.get("last_modified", "")[:64]}


class CrawledHost(models.Model):
    """A host that a run met: what its robots.txt says, read once a run. One whose robots.txt cannot be read is asked for nothing."""

    organization = models.ForeignKey("kb.Organization", on_delete=models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey(IngestionRun, on_delete=models.CASCADE, related_name="hosts")
    origin = models.CharField(max_length=300, help_text="https://host, with the port where it is not the usual one.")
    outcome = models.CharField(max_length=16, help_text="read, none (no rules), unavailable (nothing may be asked), ignored (by setting).")
    robots = models.TextField(blank=True, default="")
    crawl_delay = models.FloatField(null=True, help_text="Seconds between two requests, as its robots.txt asks for.")
    status = models.PositiveSmallIntegerField(null=True)
    error = models.TextField(blank=True, default="")
    read_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "origin"], name="crawled_host_once")]

    def __str__(self) -> str:
        return f"{self.origin} {self.outcome}"
