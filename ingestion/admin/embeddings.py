"""Embeddings of a knowledge base: what answers, how far a change of model is, and the buttons beside it."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path

from config.errors import LecternError
from ingestion.admin.confirmations import carry_out, page_of
from ingestion.services import embeddings
from kb import access, space_changes
from kb.access import Level
from kb.admin.rows import RowAdmin, ShownOnly, actor_of, actors
from kb.embedding_status import look
from kb.models import KnowledgeBase, SpaceChange


@admin.register(SpaceChange)
class SpaceChangeAdmin(ShownOnly, RowAdmin):
    """Changes of embedding models, the newest first."""

    within_knowledge_base = True
    list_display = (
        "knowledge_base",
        "from_model",
        "to_model",
        "state",
        "total",
        "filled",
        "computed",
        "created_at",
        "switched_at",
        "error",
    )
    list_filter = (("knowledge_base", admin.RelatedOnlyFieldListFilter), "state")
    list_select_related = ("knowledge_base",)
    exclude = ("lease_token", "lease_until")
    ordering = ("-created_at",)

    def get_urls(self) -> list[Any]:
        page = self.admin_site.admin_view(self.embeddings_view)
        return [path("of/<uuid:kb_id>/", page, name="kb_spacechange_embeddings"), *super().get_urls()]

    def embeddings_view(self, request: HttpRequest, kb_id: Any) -> HttpResponse:
        """GET shows, POST does what its button says."""
        found = self._knowledge_base(request, kb_id)
        if request.method == "POST":
            carry_out(request, lambda: self._do(request, found, request.POST.get("action", "")))
            return HttpResponseRedirect(request.path)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Embeddings of {found}",
            "status": look(found),
            "back": page_of(found),
            "may_change": admin.site._registry[KnowledgeBase].has_change_permission(request, found),
        }
        return TemplateResponse(request, "ingestion/admin/embeddings.html", context)

    def _knowledge_base(self, request: HttpRequest, kb_id: Any) -> KnowledgeBase:
        rows = KnowledgeBase.objects.select_related("organization", "current").filter(state=KnowledgeBase.State.ACTIVE, id=kb_id)
        found = rows.first()
        if found is None:
            raise Http404
        seen = any(access.knowledge_bases(actor).filter(id=kb_id).exists() for actor in actors(request))
        if not (request.user.is_superuser or seen):
            raise Http404
        return found

    def _do(self, request: HttpRequest, knowledge_base: KnowledgeBase, wanted: str) -> str:
        actor = actor_of(request, knowledge_base.organization)
        editable = access.get_knowledge_base(actor, knowledge_base.id, Level.EDIT)
        actions: dict[str, Callable[[], str]] = {
            "reembed": lambda: _told(embeddings.reembed(editable, actor=actor)),
            "anew": lambda: _told(embeddings.reembed(editable, actor=actor, anew=True)),
            "cancel": lambda: f"The change to {space_changes.cancel(editable, by=actor.name).to_model} was stopped.",
            "rollback": lambda: f"Version {embeddings.roll_back_model(editable, actor=actor).number} names the model before.",
        }
        if wanted not in actions:
            raise LecternError("There is no such button. Load the page again.")
        return actions[wanted]()


def _told(done: embeddings.Reembedding) -> str:
    errors = f" {' '.join(done.errors)}" if done.errors else ""
    return f"{done.reembedded:,} of {done.total:,} chunks are embedded; workers do the rest.{errors}"
