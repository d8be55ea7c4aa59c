"""Traces in the admin: to be read, by whoever may see all that was searched."""

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from retrieval.models import RetrievalTrace


@admin.register(RetrievalTrace)
class RetrievalTraceAdmin(ModelAdmin):
    list_display = ("created_at", "query", "mode", "reason", "degraded", "organization")
    list_filter = ("reason", "degraded", "mode", "organization")
    search_fields = ("query",)
    ordering = ("-created_at",)
    list_select_related = ("organization",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: RetrievalTrace | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: RetrievalTrace | None = None) -> bool:
        return False
