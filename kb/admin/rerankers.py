"""The registry of rerankers, with a call that tries one."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action

from config.errors import LecternError
from kb import access, reranking
from kb.access import Actor, Level
from kb.admin.rows import InstallationRowAdmin, ServiceForm, actor_of, adopt
from kb.models import Reranker

FIELDS = tuple(reranking.document_of(Reranker()))


class RerankerForm(ServiceForm):
    class Meta:
        model = Reranker
        fields = ("organization", *FIELDS)

    def document(self) -> dict[str, Any]:
        data = {name: self.cleaned_data[name] for name in FIELDS}
        return {
            **data,
            "endpoint": data["endpoint"] or None,
            "credential": data["credential"] or None,
            "parameters": data["parameters"] or {},
        }


@admin.register(Reranker)
class RerankerAdmin(InstallationRowAdmin):
    """Without an organization a reranker serves the whole installation, and only an operator changes it."""

    form = RerankerForm
    level = Level.VIEW
    list_display = ("name", "organization", "provider", "model", "timeout")
    list_filter = ("provider",)
    search_fields = ("name", "model")
    list_select_related = ("organization",)
    actions_detail = ("try_it",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=access.rerankers(actor).values("pk"))

    def save_model(self, request: HttpRequest, obj: Reranker, form: Any, change: bool) -> None:
        organization = obj.organization if change else form.cleaned_data["organization"]
        actor = actor_of(request, organization)
        if change:
            found = reranking.get_reranker(actor, obj.pk, change=True)
            adopt(obj, reranking.change_reranker(found, document=form.document()))
        else:
            adopt(obj, reranking.register_reranker(actor, document=form.document(), installation=organization is None))

    def delete_model(self, request: HttpRequest, obj: Reranker) -> None:
        reranking.delete_reranker(obj)

    @action(description="Try it", icon="experiment", url_path="try")
    def try_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        found = self.get_object(request, object_id)
        if found is None or not self.may_change(request, found):
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        try:
            probe = reranking.probe_reranker(found, organization_id=actor_of(request, found.organization).organization.id)
        except LecternError as error:
            messages.error(request, error.message)
        else:
            scores = f"{probe.relevant:.2f} for a passage that answers, {probe.irrelevant:.2f} for one that does not"
            messages.success(request, f"{scores}, in {probe.milliseconds:.0f} ms.")
        return HttpResponseRedirect(reverse("admin:kb_reranker_change", args=[object_id]))
