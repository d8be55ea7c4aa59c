"""Versions of knowledge bases: read only, each with what it changed."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import action

from kb.admin.rows import RowAdmin, ShownOnly
from kb.admin.text import text_of
from kb.models import KnowledgeBaseVersion


@admin.register(KnowledgeBaseVersion)
class VersionAdmin(ShownOnly, RowAdmin):
    within_knowledge_base = True
    list_display = ("number", "knowledge_base", "is_current", "author_name", "comment", "created_at", "difference")
    list_display_links = ("number",)
    list_filter = (("knowledge_base", admin.RelatedOnlyFieldListFilter),)
    search_fields = ("comment", "author_name")
    list_select_related = ("knowledge_base",)
    fields = ("knowledge_base", "number", "is_current", "author_name", "comment", "created_at", "document_shown")
    readonly_fields = fields
    ordering = ("knowledge_base", "-number")
    actions_detail = ("difference_page", "roll_back")

    def get_queryset(self, request: HttpRequest) -> QuerySet[KnowledgeBaseVersion]:
        return super().get_queryset(request).filter(knowledge_base__state="active")

    @admin.display(description="current", boolean=True)
    def is_current(self, obj: KnowledgeBaseVersion) -> bool:
        return obj.knowledge_base.current_id == obj.pk

    @admin.display(description="what changed")
    def difference(self, obj: KnowledgeBaseVersion) -> SafeString:
        return format_html('<a href="{}" class="text-primary-600">what changed</a>', _diff_url(obj))

    @admin.display(description="document")
    def document_shown(self, obj: KnowledgeBaseVersion) -> SafeString:
        return format_html('<pre style="white-space: pre-wrap">{}</pre>', text_of(obj))

    @action(description="What changed", icon="difference", url_path="difference")
    def difference_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._to(request, object_id, _diff_url)

    @action(description="Roll back to this version", icon="undo", url_path="roll-back")
    def roll_back(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._to(request, object_id, _rollback_url)

    def _to(self, request: HttpRequest, object_id: str, url_of: Any) -> HttpResponse:
        found = self.get_object(request, object_id)
        if found is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return HttpResponseRedirect(url_of(found))


def _diff_url(obj: KnowledgeBaseVersion) -> str:
    return f"{reverse('admin:kb_knowledgebase_diff', args=[obj.knowledge_base_id])}?to={obj.number}"


def _rollback_url(obj: KnowledgeBaseVersion) -> str:
    return reverse("admin:kb_knowledgebase_rollback", args=[obj.knowledge_base_id, obj.number])
