"""Traces in the admin: to be read, by whoever may see all that was searched."""

from django.contrib import admin
from django.db.models import Q

from kb.access import Actor
from kb.admin.rows import RowAdmin, ShownOnly
from retrieval.models import RetrievalTrace
from retrieval.traces import visible_traces


@admin.register(RetrievalTrace)
class RetrievalTraceAdmin(ShownOnly, RowAdmin):
    list_display = ("created_at", "query", "mode", "reason", "degraded", "organization")
    list_filter = ("reason", "degraded", "mode", ("organization", admin.RelatedOnlyFieldListFilter))
    search_fields = ("query",)
    ordering = ("-created_at",)
    list_select_related = ("organization",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=visible_traces(actor).values("pk"))
