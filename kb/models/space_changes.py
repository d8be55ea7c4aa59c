"""The way of a knowledge base from one embedding space to another."""

from django.db import models
from django.db.models import Q

from kb.models.base import TenantRow
from kb.models.knowledge_bases import KnowledgeBase, KnowledgeBaseVersion
from kb.models.spaces import EmbeddingSpace


class SpaceChange(TenantRow):
    """One change of model, with what was done of it.

    ```
    filling ──▶ switching ──▶ grace ──▶ done
       └──────────┴──▶ failed | cancelled | superseded       grace ──▶ rolled_back
    ```

    While it is filling, the stored chunks get vectors in `to_space` and searches see `from_space` alone; `switching` waits for the
    index of a large space; then one transaction lets everything be answered from `to_space`. During the grace period the vectors
    of `from_space` stay, so that the way back is short. With equal spaces nothing is switched: vectors are mended or
    computed anew in place.
    """

    class State(models.TextChoices):
        FILLING = "filling"
        SWITCHING = "switching"
        GRACE = "grace"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        SUPERSEDED = "superseded"
        ROLLED_BACK = "rolled_back"

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="space_changes")
    version = models.ForeignKey(KnowledgeBaseVersion, on_delete=models.CASCADE, related_name="+")
    from_space = models.ForeignKey(EmbeddingSpace, null=True, on_delete=models.SET_NULL, related_name="+")
    to_space = models.ForeignKey(EmbeddingSpace, null=True, on_delete=models.SET_NULL, related_name="+")
    from_model = models.CharField(max_length=100, help_text="Its name at that time.")
    to_model = models.CharField(max_length=100, help_text="Its name at that time.")
    state = models.CharField(max_length=16, choices=State, default=State.FILLING)
    requested_name = models.CharField(max_length=300, blank=True, default="", help_text="Who asked for it, in words.")
    cursor = models.BigIntegerField(default=0, help_text="The last chunk that was looked at; a pass begins at 0.")
    until = models.BigIntegerField(null=True, help_text="Of a renewal: the last chunk that there was when it began.")
    total = models.PositiveBigIntegerField(default=0, help_text="Chunks when it began.")
    filled = models.PositiveBigIntegerField(default=0, help_text="Vectors written into the new space.")
    computed = models.PositiveBigIntegerField(default=0, help_text="Texts that were paid for it; the others were known.")
    too_long = models.PositiveBigIntegerField(default=0, help_text="Texts of which the new model reads the beginning alone.")
    per_second = models.FloatField(default=0, help_text="Chunks a second, of late.")
    error = models.TextField(blank=True, default="", help_text="Why it waits or failed, in words.")
    reason = models.CharField(
        max_length=40, blank=True, default="", help_text="The code of a failure: budget_exhausted, embedding_failed …"
    )
    failures = models.PositiveSmallIntegerField(default=0, help_text="Passing faults in a row.")
    not_before = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    filled_at = models.DateTimeField(null=True, help_text="When every chunk had a vector.")
    switched_at = models.DateTimeField(null=True)
    grace_until = models.DateTimeField(null=True, help_text="Until then the vectors of the old space stay.")
    finished_at = models.DateTimeField(null=True)

    OPEN = (State.FILLING, State.SWITCHING)
    LIVE = (*OPEN, State.GRACE)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base"], condition=Q(state__in=["filling", "switching"]), name="space_change_open_once"
            ),
        ]
        indexes = [
            # History of a knowledge base, newest first.
            models.Index(fields=["knowledge_base", "-created_at"], name="space_change_history"),
            # What keeps spaces alive, and what the sweep wakes.
            models.Index(
                fields=["state", "grace_until"], condition=Q(state__in=["filling", "switching", "grace"]), name="space_change_live"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.knowledge_base}: {self.from_model} → {self.to_model}, {self.state}"

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN

    @property
    def is_in_place(self) -> bool:
        """Vectors of the space that answers are added where they are missing, or computed anew (`until`)."""
        return self.from_space_id == self.to_space_id
