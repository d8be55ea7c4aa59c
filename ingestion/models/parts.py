"""Parts of files that have to be recognized: wanted until they are read, a cache afterwards."""

from django.db import models

# What a worker may take next, and what is left to do: neither read nor given up.
WAITING = models.Q(text__isnull=True, error="")


class RecognizedPart(models.Model):
    """One page, picture or stretch of speech of one content under one recipe: work queue and cache in one row.

    Taken with a lease and committed one by one, so that a killed worker repeats at most the part in flight. Rows survive reaping,
    cancelling and generations, and are collected 30 days after their last use: a scan that was stopped at page 350 goes on there.
    Never shared between organizations.
    """

    class Kind(models.TextChoices):
        PAGE = "page"
        PICTURE = "picture"
        DESCRIPTION = "description"
        SPEECH = "speech"

    organization = models.ForeignKey("kb.Organization", on_delete=models.CASCADE, related_name="+", db_index=False)
    content_hash = models.BinaryField(max_length=32, help_text="SHA-256 of the file's bytes.")
    recipe = models.CharField(max_length=32, help_text="Fingerprint of the engines and models that read it.")
    position = models.PositiveIntegerField(help_text="In reading order, from 0.")
    kind = models.CharField(max_length=16, choices=Kind)
    page = models.PositiveIntegerField(null=True)
    start = models.FloatField(null=True, help_text="Seconds of a recording.")
    end = models.FloatField(null=True)
    text = models.TextField(null=True)  # noqa: DJ001 - empty is an answer: nothing to read there
    details = models.JSONField(default=dict, help_text="Engine, confidence, rotation, language, cues.")
    not_before = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Leases taken without an answer: its worker died.")
    failures = models.PositiveSmallIntegerField(default=0, help_text="Transient answers of the provider, in a row.")
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="")
    retires = models.BooleanField(default=False, help_text="The error is the content's fault.")
    used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "content_hash", "recipe", "position"], name="recognized_part_once")]
        indexes = [
            # The collector: rows by last use.
            models.Index(fields=["used_at"], name="recognized_part_collect"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.position}"
