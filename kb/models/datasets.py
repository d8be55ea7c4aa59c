"""Tables as data: datasets, and the Parquet files that their rows are in."""

from django.db import models
from django.db.models import F, Q

from kb.models.base import TenantRow
from kb.models.documents import Blob, Document
from kb.models.knowledge_bases import KnowledgeBase, Source


class Dataset(TenantRow):
    """A table that is queried with SQL. Its rows, columns and types are those of its parts; one without parts is not there.

    Identity is (source, key): the file and sheet that it is made of, or the name that a policy gives it.
    """

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="datasets")
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="datasets")
    key = models.CharField(max_length=400)
    key_hash = models.BinaryField(max_length=16)
    name = models.CharField(max_length=63, help_text="What SQL calls it.")
    updated_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "key_hash"], name="dataset_once")]
        indexes = [models.Index(fields=["organization", "knowledge_base", "id"], name="dataset_of_knowledge_base")]

    def __str__(self) -> str:
        return self.name


class DatasetPart(TenantRow):
    """A Parquet file of a dataset. It is its document's, and goes with what that has published.

    `start` and `end` are where the document's Markdown describes the dataset; of several documents the last one's chunk stands for it.
    """

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="parts")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="dataset_parts")
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="+")
    sheet = models.CharField(max_length=255, blank=True, default="")
    columns = models.JSONField(help_text="[{name, type, is_empty}], in order.")
    partition = models.JSONField(default=dict, blank=True, help_text="The values that its partition columns have in all rows.")
    rows = models.BigIntegerField()
    size = models.BigIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(start__lt=F("end")), name="dataset_part_span")]
        verbose_name = "dataset part"

    def __str__(self) -> str:
        return f"{self.dataset} of {self.document}"
