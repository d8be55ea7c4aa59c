"""Files on their way in: asked for, sent in one piece or several, and taken over once."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from kb.models.base import TenantRow
from kb.models.tenants import ApiKey, User


class Upload(TenantRow):
    """What somebody announced and sends. Its parts lie in the storage until it is taken over or collected; it belongs to who asked for it.

    `target` says where it goes, in the words of who takes it over. `busy_until`: somebody takes it over now; `finished_at`: it was taken
    over, or refused for good."""

    class Target(models.TextChoices):
        SOURCE = "source"
        CHANNEL = "channel"

    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    api_key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="+")
    target = models.CharField(max_length=16, choices=Target)
    details = models.JSONField(default=dict)
    file_name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=200, blank=True, default="")
    size = models.BigIntegerField(help_text="As announced; more or less is refused.")
    sha256 = models.BinaryField(max_length=32, null=True, help_text="As announced; one that comes in pieces may say it at the end.")
    is_resumable = models.BooleanField(default=False)
    received = models.BigIntegerField(default=0)
    parts = ArrayField(models.CharField(max_length=200), default=list, help_text="Keys in the storage, in their order.")
    expires_at = models.DateTimeField()
    busy_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(received__lte=F("size")), name="upload_within_its_size")]
        indexes = [models.Index(fields=["expires_at"], name="upload_collect")]

    def __str__(self) -> str:
        return self.file_name
