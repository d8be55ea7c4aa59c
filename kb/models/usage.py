"""What was spent at providers of embedding models."""

from django.db import models

from kb.models.base import TenantRow
from kb.models.knowledge_bases import KnowledgeBase

SLOTS = 8  # rows that one sum is spread over: workers and searches that count at once seldom wait for each other


class Usage(TenantRow):
    """What answered calls came to in a month (its first day, UTC), by knowledge base, model and what for. A sum is spread over a few
    rows, its `slot`s; it outlives the knowledge base."""

    class Purpose(models.TextChoices):
        DOCUMENTS = "documents"
        QUESTIONS = "questions"

    knowledge_base = models.ForeignKey(KnowledgeBase, null=True, on_delete=models.SET_NULL, related_name="+")
    month = models.DateField()
    model = models.CharField(max_length=100, help_text="The name under which it was registered.")
    purpose = models.CharField(max_length=16, choices=Purpose)
    slot = models.PositiveSmallIntegerField(default=0)
    requests = models.BigIntegerField(default=0)
    texts = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    cost = models.DecimalField(max_digits=24, decimal_places=12, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["knowledge_base", "month", "model", "purpose", "slot"], name="usage_once"),
        ]
        indexes = [models.Index(fields=["organization", "month"], name="usage_by_month")]
        verbose_name = "usage"
        verbose_name_plural = "usage"

    def __str__(self) -> str:
        return f"{self.knowledge_base} {self.month:%Y-%m} {self.model}"
