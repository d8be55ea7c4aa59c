"""What the pipeline and the fleet write about themselves, to be read."""

from typing import ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from ingestion.models import EmbeddedText, ProviderCall, QueueBeat, WorkerHeartbeat
from kb.access import Actor, Level
from kb.admin.rows import RowAdmin, ShownOnly


@admin.register(EmbeddedText)
class EmbeddedTextAdmin(ShownOnly, RowAdmin):
    """Texts that are paid, or wanted, of all the organization's knowledge bases: for who may see all of them. A vector is never
    shown: it is numbers and a lot of them."""

    level: ClassVar[Level] = Level.ADMIN
    list_display = ("id", "organization", "space", "is_paid", "tokens", "failures", "error", "used_at")
    list_filter = (("space", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("organization", "space__embedding_model")
    exclude = ("vector", "text_hash", "lease_token")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[EmbeddedText]:
        return super().get_queryset(request).defer("text", "vector").extra(select={"paid": "vector IS NOT NULL"})

    @admin.display(boolean=True, description="paid")
    def is_paid(self, row: EmbeddedText) -> bool:
        return row.paid


@admin.register(ProviderCall)
class ProviderCallAdmin(ShownOnly, RowAdmin):
    """Each request to a provider: written before it is sent, so one without an answer was cut short."""

    level: ClassVar[Level] = Level.ADMIN
    list_display = ("id", "organization", "space", "run", "texts", "tokens", "sent_at", "received_at", "error")
    list_filter = (("space", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("organization", "space__embedding_model", "run__source__knowledge_base")
    ordering = ("-id",)


class OperatorRows(ShownOnly, RowAdmin):
    """Rows of the installation: only operators see them."""

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=[])

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.is_superuser


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(OperatorRows):
    list_display = ("name", "queues", "concurrency", "pid", "rss", "peak_rss", "started_at", "seen_at")
    ordering = ("name",)

    @admin.display(description="memory")
    def rss(self, row: WorkerHeartbeat) -> str:
        return f"{row.rss_bytes / 2**20:,.0f} MiB"

    @admin.display(description="peak memory")
    def peak_rss(self, row: WorkerHeartbeat) -> str:
        return f"{row.peak_rss_bytes / 2**20:,.0f} MiB"


@admin.register(QueueBeat)
class QueueBeatAdmin(OperatorRows):
    list_display = ("queue", "sent_at", "received_at")
    ordering = ("queue",)
