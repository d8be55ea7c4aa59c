"""The registry of embedding models, and the spaces that their vectors live in."""

from django.db import models
from django.db.models import Q

from kb.models.base import Row
from kb.models.tenants import Organization

# One vector table per dimension, made by migration; another dimension is refused.
DIMENSIONS = (256, 384, 512, 768, 1024, 1536, 3072)


class EmbeddingModel(Row):
    """A registered model. Without an organization it serves the whole installation (an operator's row)."""

    organization = models.ForeignKey(Organization, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=300, help_text="The provider's name of the model, or a path for the local provider.")
    dimension = models.PositiveIntegerField()
    max_input_tokens = models.PositiveIntegerField()
    endpoint = models.CharField(max_length=2000, blank=True, default="")
    credential = models.CharField(max_length=100, blank=True, default="", help_text="The name of a secret, never its value.")
    parameters = models.JSONField(default=dict, blank=True)
    query_prefix = models.CharField(max_length=500, blank=True, default="")
    document_prefix = models.CharField(max_length=500, blank=True, default="")
    price_per_million_tokens = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    is_default = models.BooleanField(default=False)
    vector_index = models.CharField(
        max_length=16,
        choices=[("halfvec", "halfvec"), ("binary", "binary")],
        default="halfvec",
        help_text="What the index of a large space is made of: the vectors, or their signs, which take a tenth of the room.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="embedding_model_name_once", nulls_distinct=False),
            models.UniqueConstraint(
                fields=["organization"], condition=Q(is_default=True), name="embedding_model_one_default", nulls_distinct=False
            ),
            models.CheckConstraint(condition=Q(dimension__in=DIMENSIONS), name="embedding_model_dimension"),
        ]

    def __str__(self) -> str:
        return self.name


class EmbeddingSpace(models.Model):
    """Vectors that may be compared: one registered model, one dimension, one way of handling roles.

    Its number is the partition key of the dimension's table. `provisioned_at` is set once the partition is attached;
    until then nothing can be embedded into it.
    """

    embedding_model = models.OneToOneField(EmbeddingModel, on_delete=models.PROTECT, related_name="space")
    dimension = models.PositiveIntegerField()
    fingerprint = models.CharField(max_length=32, help_text="Of everything that changes a vector.")
    provisioned_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(dimension__in=DIMENSIONS), name="embedding_space_dimension")]

    def __str__(self) -> str:
        return f"{self.embedding_model} ({self.dimension})"
