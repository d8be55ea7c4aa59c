"""Recall checks: whether the index of vectors finds what is there."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action

from config.errors import LecternError
from kb.access import Level
from kb.admin.rows import ShownOnly
from retrieval.admin.bases import OfKnowledgeBase, cancelled, choosable, chosen, page
from retrieval.models import RecallCheck
from retrieval.recall import running


@admin.register(RecallCheck)
class RecallCheckAdmin(ShownOnly, OfKnowledgeBase):
    list_display = ("created_at", "knowledge_base", "version", "status", "recall", "verdict")
    list_filter = (("knowledge_base", admin.RelatedOnlyFieldListFilter), "status")
    list_select_related = ("knowledge_base",)
    ordering = ("-created_at",)
    actions_list = ("check_recall",)
    actions_detail = ("cancel_check",)
    change_form_outer_before_template = "retrieval/admin/levels.html"
    fields = ("knowledge_base", "version", "status", "recall", "verdict", "notes", "error", "settings", "requested_name", "finished_at")
    readonly_fields = fields

    @admin.display(description="what to know")
    def verdict(self, obj: RecallCheck) -> str:
        return " ".join(running.warnings_of(obj)) or ("All is well." if obj.recall is not None else f"{obj.done} of {obj.total}")

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        found = self.get_object(request, object_id)
        levels = [(f"{100 * level['selectivity']:g} %", level) for level in found.levels] if found else []
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "levels": levels})

    @action(description="Check recall", icon="troubleshoot", url_path="check")
    def check_recall(self, request: HttpRequest) -> HttpResponse:
        """Choose a knowledge base, then a worker measures."""
        named = request.POST.get("knowledge_base") or request.GET.get("knowledge_base", "")
        if request.method == "POST":
            try:
                made = running.start_check(*chosen(request, named, Level.EDIT))
            except LecternError as error:
                messages.error(request, error.message)
            else:
                return HttpResponseRedirect(reverse("admin:retrieval_recallcheck_change", args=[made.pk]))
        return page(self, request, "check", title="Check recall", rows=choosable(request, Level.EDIT), named=named)

    @action(description="Cancel", icon="cancel", url_path="cancel")
    def cancel_check(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return cancelled(self, request, object_id)
