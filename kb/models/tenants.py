"""Who may do what: users, organizations, memberships, API keys, grants and secrets."""

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from kb.models.base import Row, TenantRow


class User(AbstractUser):
    """A person. Rights come from memberships and grants; `is_superuser` is the installation's operator."""


class Role(models.TextChoices):
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class Organization(Row):
    """The tenant. Nothing is shared between two of them, embedding caches included."""

    class State(models.TextChoices):
        ACTIVE = "active"
        DELETING = "deleting"

    name = models.CharField(max_length=200, unique=True)
    state = models.CharField(max_length=16, choices=State, default=State.ACTIVE)

    def __str__(self) -> str:
        return self.name


class Membership(TenantRow):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role, default=Role.VIEWER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.organization} as {self.role}"


class ApiKey(TenantRow):
    """A bearer key. Only its SHA-256 is kept; the value is shown once, when it is made."""

    name = models.CharField(max_length=200)
    prefix = models.CharField(max_length=16, help_text="The first characters, to recognise the key by.")
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    role = models.CharField(max_length=16, choices=Role, default=Role.VIEWER)
    knowledge_base_ids = ArrayField(models.UUIDField(), default=list, blank=True, help_text="Empty: every knowledge base the role may see.")
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_usable(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())


class Grant(TenantRow):
    """A private knowledge base opened to one user."""

    class Level(models.TextChoices):
        VIEWER = "viewer"
        EDITOR = "editor"

    knowledge_base = models.ForeignKey("kb.KnowledgeBase", on_delete=models.CASCADE, related_name="grants")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="grants")
    level = models.CharField(max_length=16, choices=Level, default=Level.VIEWER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["knowledge_base", "user"], name="grant_once")]

    def __str__(self) -> str:
        return f"{self.user}: {self.level} of {self.knowledge_base}"


class Secret(Row):
    """An encrypted value, written `${secret:NAME}` in documents. Without an organization it serves the whole installation."""

    organization = models.ForeignKey(Organization, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    ciphertext = models.BinaryField(editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="secret_name_once", nulls_distinct=False),
            models.CheckConstraint(condition=Q(name__regex=r"^[A-Za-z][A-Za-z0-9_.-]*$"), name="secret_name_form"),
        ]

    def __str__(self) -> str:
        return self.name


class IdempotencyKey(TenantRow):
    """The first answer to a request that carried an Idempotency-Key; the same key with another body is refused."""

    key_digest = models.BinaryField(max_length=32)
    body_digest = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    response = models.JSONField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "key_digest"], name="idempotency_key_once")]
