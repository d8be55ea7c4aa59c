"""The registry of rerankers: what reads the question beside each candidate once more."""

from django.db import models

from kb.models.base import Row
from kb.models.tenants import Organization


class Reranker(Row):
    """A registered reranker, named by knowledge bases and requests. Without an organization it serves the whole installation."""

    organization = models.ForeignKey(Organization, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=300, help_text="The provider's name of the model, or a path for the cross-encoder.")
    endpoint = models.CharField(max_length=2000, blank=True, default="")
    credential = models.CharField(max_length=100, blank=True, default="", help_text="The name of a secret, never its value.")
    parameters = models.JSONField(default=dict, blank=True)
    timeout = models.FloatField(default=2.0, help_text="Seconds after which a search goes on without it.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="reranker_name_once", nulls_distinct=False)]

    def __str__(self) -> str:
        return self.name
