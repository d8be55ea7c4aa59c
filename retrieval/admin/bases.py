"""Which knowledge bases a person may choose on a page, and who acts on them."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.admin import ModelAdmin

from config.errors import LecternError
from kb import access
from kb.access import Actor, Level
from kb.admin.rows import RowAdmin, actor_of, actors
from kb.models import KnowledgeBase
from retrieval import jobs


def choosable(request: HttpRequest, level: Level) -> QuerySet[KnowledgeBase]:
    """Those that the person may use at `level`, in all their organizations."""
    rows = KnowledgeBase.objects.filter(state=KnowledgeBase.State.ACTIVE, current__isnull=False).select_related("organization", "current")
    if not request.user.is_superuser:
        seen = Q(pk__in=[])
        for actor in actors(request):
            seen |= Q(pk__in=access.knowledge_bases(actor, level).values("pk"))
        rows = rows.filter(seen)
    return rows.order_by("name")


def chosen(request: HttpRequest, identifier: str, level: Level) -> tuple[Actor, KnowledgeBase]:
    """The one that a form named, and the person as a member of its organization. Absent if it cannot be seen, `Forbidden` below `level`."""
    try:
        row = choosable(request, Level.VIEW).filter(pk=UUID(identifier)).first()
    except ValueError:
        row = None
    if row is None:
        raise Http404
    actor = actor_of(request, row.organization)
    return actor, access.get_knowledge_base(actor, row.pk, level)


class OfKnowledgeBase(RowAdmin):
    """Rows that belong to a knowledge base and are changed by who may change that."""

    within_knowledge_base = True

    def may_change(self, request: HttpRequest, obj: Any = None) -> bool:
        rows = choosable(request, Level.EDIT)
        return rows.filter(pk=obj.knowledge_base_id).exists() if obj is not None else rows.exists()


def page(model_admin: ModelAdmin, request: HttpRequest, template: str, **values: Any) -> TemplateResponse:
    context = {**model_admin.admin_site.each_context(request), "opts": model_admin.opts, **values}
    return TemplateResponse(request, f"retrieval/admin/{template}.html", context)


def cancelled(model_admin: OfKnowledgeBase, request: HttpRequest, object_id: str) -> HttpResponse:
    """End a job, for who may change its knowledge base; a page asks first."""
    found = model_admin.get_object(request, object_id)
    if found is None or not model_admin.may_change(request, found):
        raise Http404
    back = reverse(f"admin:{found._meta.app_label}_{found._meta.model_name}_change", args=[found.pk])
    if request.method != "POST":
        return page(model_admin, request, "cancel", title=f"Cancel {found}", back=back)
    try:
        jobs.cancel(found)
        messages.success(request, "It was cancelled.")
    except LecternError as error:
        messages.error(request, error.message)
    return HttpResponseRedirect(back)
