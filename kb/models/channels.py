"""Where files are sent: channels with their ingest policy, and the services that an operator lets them use."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from kb.models.base import Row, TenantRow
from kb.models.knowledge_bases import KnowledgeBase, Source
from kb.models.tenants import Organization, User


class Channel(TenantRow):
    """A door for files into one knowledge base. What comes through it are documents of its own internal source."""

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="channels")
    source = models.OneToOneField(Source, on_delete=models.CASCADE, related_name="channel", editable=False)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    policy = models.JSONField(default=dict, blank=True, help_text="Its layer of the ingest policy: only what it says.")
    is_default = models.BooleanField(default=False, help_text="Takes the files that name no channel; one at most in an organization.")
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+", editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("organization", Lower("name"), name="channel_name_once"),
            models.UniqueConstraint(fields=["organization"], condition=Q(is_default=True), name="channel_one_default"),
        ]

    def __str__(self) -> str:
        return self.name


class ServiceBinding(Row):
    """An endpoint and the secret that may be sent there, bound together by an operator. What a channel or an upload names must be such
    a pair, so that nobody can have a key sent to an address of their own. Without an organization it serves the whole installation."""

    class Purpose(models.TextChoices):
        TRANSCRIPTION = "transcription"
        VISION = "vision"

    organization = models.ForeignKey(Organization, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    purpose = models.CharField(max_length=16, choices=Purpose)
    endpoint = models.CharField(max_length=2000)
    credential = models.CharField(max_length=100, blank=True, default="", help_text="The name of a secret; empty for a service without.")
    model = models.CharField(max_length=300, blank=True, default="", help_text="Used where a policy names none.")
    is_default = models.BooleanField(default=False, help_text="Serves every file whose policy names no service.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "purpose", "endpoint", "credential"], name="service_binding_once", nulls_distinct=False
            ),
            models.UniqueConstraint(
                fields=["organization", "purpose"], condition=Q(is_default=True), name="service_binding_one_default", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} at {self.endpoint}"
