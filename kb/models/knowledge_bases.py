"""Versioned configuration: the stable identity of a knowledge base, its immutable numbered versions, and its sources."""

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from kb.models.base import TenantRow
from kb.models.tenants import User


class KnowledgeBase(TenantRow):
    """The identity that everything is keyed by. Name and visibility are copies of the current document, for constraints and lists."""

    class State(models.TextChoices):
        ACTIVE = "active"
        DELETING = "deleting"

    class Visibility(models.TextChoices):
        PRIVATE = "private"
        ORGANIZATION = "organization"

    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    visibility = models.CharField(max_length=16, choices=Visibility, default=Visibility.PRIVATE)
    state = models.CharField(max_length=16, choices=State, default=State.ACTIVE)
    hidden = models.BooleanField(default=False, help_text="Belongs to an agent and is not listed.")
    current = models.ForeignKey("kb.KnowledgeBaseVersion", null=True, editable=False, on_delete=models.RESTRICT, related_name="+")
    space = models.ForeignKey(
        "kb.EmbeddingSpace", null=True, editable=False, on_delete=models.PROTECT, related_name="knowledge_bases", help_text="What answers."
    )
    named_space = models.ForeignKey(
        "kb.EmbeddingSpace",
        null=True,
        editable=False,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Of the model that the current version names; another than what answers while the model is changed.",
    )
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint("organization", Lower("name"), condition=Q(state="active"), name="knowledge_base_name_once"),
        ]

    def __str__(self) -> str:
        return self.name


class KnowledgeBaseVersion(TenantRow):
    """One published document. A trigger refuses every UPDATE; rows go only with their knowledge base."""

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    document = models.JSONField(encoder=DjangoJSONEncoder)
    comment = models.TextField(blank=True, default="")
    author = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    author_name = models.CharField(max_length=200, blank=True, default="", help_text="Stays readable when the account is renamed.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["knowledge_base", "number"], name="knowledge_base_version_once")]
        ordering = ["-number"]
        verbose_name = "version"

    def __str__(self) -> str:
        return f"{self.knowledge_base} v{self.number}"


class Source(TenantRow):
    """Where documents of a knowledge base come from. Web and upload sources mirror `sources[]` of the current document;
    `direct`, `channel` and `attached` ones are made by us: one `direct` a knowledge base, one a channel, one `attached` an agent."""

    class Kind(models.TextChoices):
        WEB = "web"
        UPLOAD = "upload"
        DIRECT = "direct"
        CHANNEL = "channel"
        ATTACHED = "attached"

    class State(models.TextChoices):
        ACTIVE = "active"
        REMOVING = "removing"

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="sources")
    kind = models.CharField(max_length=16, choices=Kind)
    name = models.CharField(max_length=200)
    enabled = models.BooleanField(default=True)
    state = models.CharField(max_length=16, choices=State, default=State.ACTIVE)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["knowledge_base", "kind"], condition=Q(kind="direct"), name="source_direct_once"),
        ]
        indexes = [models.Index(fields=["organization", "knowledge_base"], name="source_of_knowledge_base")]

    def __str__(self) -> str:
        return f"{self.knowledge_base}/{self.name}"
