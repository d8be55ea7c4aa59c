"""What is known: stored bytes, files, documents and their chunks."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from kb.models.base import TenantRow
from kb.models.knowledge_bases import KnowledgeBase, Source
from kb.models.tenants import ApiKey, User


class Blob(TenantRow):
    """Stored bytes, one row per content and organization. The collector removes rows that nothing named or touched for 24 hours."""

    sha256 = models.BinaryField(max_length=32)
    size = models.BigIntegerField()
    storage_key = models.CharField(max_length=200, help_text="organization/sha256/uuid; a new uuid for each life of a content.")
    touched_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "sha256"], name="blob_once")]
        indexes = [models.Index(fields=["touched_at"], name="blob_collect")]


class File(TenantRow):
    """A file that somebody gave us. It belongs to the organization; attaching it to a knowledge base makes a document.

    In a channel every upload of a title is a version of one document (`resource`), numbered from 1; `policy` is what the upload said,
    `family` (of kb.schemas.families) what its bytes, type and name say.
    """

    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="files")
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=200, blank=True, default="")
    size = models.BigIntegerField()
    sha256 = models.BinaryField(max_length=32)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    resource = models.ForeignKey("kb.Document", null=True, on_delete=models.SET_NULL, related_name="versions")
    version = models.PositiveIntegerField(default=1)
    policy = models.JSONField(default=dict, blank=True)
    family = models.CharField(max_length=16, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["resource", "version"], condition=Q(resource__isnull=False), name="file_version_once"),
        ]

    def __str__(self) -> str:
        return self.name


class Document(TenantRow):
    """One thing that a source has: a page, a file, a pushed text. Identity is (source, key).

    `content_hash` and the fingerprints say what the published chunks were made from; null after a purge. `generation`
    counts publications, `epoch` counts claims of single documents: a publication whose epoch has passed is dropped.
    Of several versions of a file, `file` is the newest and `answering` the one that what is published was made of.
    A private document is its owner's alone: a person's, or that of an API key that belongs to nobody.
    """

    class Visibility(models.TextChoices):
        PRIVATE = "private"
        ORGANIZATION = "organization"

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="documents")
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="documents")
    key = models.CharField(max_length=8192)
    key_hash = models.BinaryField(max_length=16)
    title = models.CharField(max_length=300, blank=True, default="")
    url = models.CharField(max_length=8192, blank=True, default="")
    parent_hash = models.BinaryField(null=True, help_text="Of the pages that led a crawl here, backwards to a document; null: none did.")
    media_type = models.CharField(max_length=200, blank=True, default="")
    language = models.CharField(max_length=16, blank=True, default="")
    metadata = models.JSONField(default=dict, blank=True)
    file = models.ForeignKey(File, null=True, on_delete=models.PROTECT, related_name="documents")
    answering = models.ForeignKey(
        File, null=True, on_delete=models.SET_NULL, related_name="+", help_text="The version that what is published was made of."
    )
    visibility = models.CharField(max_length=16, choices=Visibility, default=Visibility.ORGANIZATION)
    owner = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    owner_key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="+")
    part_of = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="parts", help_text="Of an attachment: the message, with which it goes."
    )
    markdown = models.ForeignKey(Blob, null=True, on_delete=models.PROTECT, related_name="+")
    page_spans = models.JSONField(default=list, blank=True, help_text="[{page, start, end}] into the Markdown.")
    content_hash = models.BinaryField(max_length=32, null=True)
    quarantined_hash = models.BinaryField(
        max_length=32, null=True, help_text="Bytes that killed their worker; not tried again until they change."
    )
    refused_under = models.CharField(
        max_length=32, blank=True, default="", help_text="Fingerprint of bytes, settings and engines; refused until it is another."
    )
    extract_fingerprint = models.CharField(max_length=32, blank=True, default="")
    chunk_fingerprint = models.CharField(max_length=32, blank=True, default="")
    context_fingerprint = models.CharField(max_length=32, blank=True, default="")
    space = models.ForeignKey("kb.EmbeddingSpace", null=True, on_delete=models.PROTECT, related_name="+")
    extractor_version = models.CharField(max_length=32, blank=True, default="")
    etag = models.CharField(max_length=1024, blank=True, default="")
    last_modified = models.CharField(max_length=64, blank=True, default="")
    generation = models.PositiveIntegerField(default=0)
    epoch = models.BigIntegerField(default=0)
    missed_runs = models.PositiveIntegerField(default=0)
    tombstoned_at = models.DateTimeField(null=True)
    size = models.BigIntegerField(default=0)
    characters = models.PositiveIntegerField(default=0)
    chunk_count = models.PositiveIntegerField(default=0)
    warnings = models.JSONField(default=list, blank=True, help_text="Sentences about what answers: what was cut, lost or assumed.")
    last_error = models.TextField(blank=True, default="")
    last_reason = models.CharField(max_length=40, blank=True, default="", help_text="The code of last_error.")
    first_ingested_at = models.DateTimeField(null=True)
    last_ingested_at = models.DateTimeField(null=True)
    last_run_id = models.UUIDField(null=True)
    seen_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "key_hash"], name="document_once")]
        indexes = [
            models.Index(fields=["organization", "knowledge_base", "id"], name="document_of_knowledge_base"),
            # Whether a search has to keep anything from somebody.
            models.Index(fields=["knowledge_base"], condition=Q(visibility="private"), name="document_private"),
        ]

    def __str__(self) -> str:
        return self.title or self.key


class Chunk(models.Model):
    """A stored passage: `markdown[start:end] == text`. Its id survives a new generation in which the same text occurs again.

    Vectors and words of a chunk live in tables without foreign keys (see `kb.stores`); a statement trigger on the
    deletion of chunks keeps them true.
    """

    organization = models.ForeignKey("kb.Organization", on_delete=models.CASCADE, related_name="+", db_index=False)
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+", db_index=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    ordinal = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    text = models.TextField()
    context = models.TextField(  # noqa: DJ001 - unknown is another thing than none
        null=True, help_text="The line of title and headings above the text that is embedded; null: from before it was kept."
    )
    text_hash = models.BinaryField(max_length=32, help_text="SHA-256 of the exact text that was embedded.")
    heading_path = ArrayField(models.TextField(), default=list)
    page_start = models.PositiveIntegerField(null=True)
    page_end = models.PositiveIntegerField(null=True)
    language = models.CharField(max_length=16, blank=True, default="")
    tokens = models.PositiveIntegerField()
    table_header = ArrayField(models.PositiveIntegerField(), null=True, size=2)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(start__lt=F("end")), name="chunk_span")]
        indexes = [
            # Neighbours of a hit, the diff of a publication, and the ids of a search among some documents.
            models.Index(fields=["document", "ordinal"], include=["id"], name="chunk_in_document"),
            # Removing and counting a whole knowledge base.
            models.Index(fields=["organization", "knowledge_base", "id"], name="chunk_of_knowledge_base"),
        ]

    def __str__(self) -> str:
        return f"{self.document}#{self.ordinal}"
