"""The registry of embedding models, with a call that tries one."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action

from config.errors import LecternError
from kb import access, embedding_models
from kb.access import Actor, Level
from kb.admin.rows import InstallationRowAdmin, ServiceForm, actor_of, adopt
from kb.models import EmbeddingModel

FIELDS = tuple(embedding_models.document_of(EmbeddingModel()))


class EmbeddingModelForm(ServiceForm):
    class Meta:
        model = EmbeddingModel
        fields = ("organization", *FIELDS)

    def document(self) -> dict[str, Any]:
        data = {name: self.cleaned_data[name] for name in FIELDS}
        price = data["price_per_million_tokens"]
        optional = {"endpoint": data["endpoint"] or None, "credential": data["credential"] or None, "parameters": data["parameters"] or {}}
        return {**data, **optional, "price_per_million_tokens": None if price is None else float(price)}


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(InstallationRowAdmin):
    """Without an organization a model serves the whole installation, and only an operator changes it."""

    form = EmbeddingModelForm
    level = Level.VIEW
    list_display = ("name", "organization", "provider", "model", "dimension", "is_default", "is_ready")
    list_filter = ("provider", "dimension")
    search_fields = ("name", "model")
    list_select_related = ("organization", "space")
    actions_detail = ("try_it",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=access.embedding_models(actor).values("pk"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[EmbeddingModel]:
        return super().get_queryset(request).select_related("space")

    @admin.display(description="ready", boolean=True)
    def is_ready(self, obj: EmbeddingModel) -> bool:
        return hasattr(obj, "space") and obj.space.provisioned_at is not None

    def save_model(self, request: HttpRequest, obj: EmbeddingModel, form: Any, change: bool) -> None:
        if change:
            actor = actor_of(request, obj.organization)
            found = embedding_models.get_model(actor, obj.pk, change=True)
            adopt(obj, embedding_models.change_model(found, document=form.document()))
            return
        organization = form.cleaned_data["organization"]
        actor = actor_of(request, organization)
        adopt(obj, embedding_models.register_model(actor, document=form.document(), installation=organization is None))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        used = [f"{obj} is used by {', '.join(users)}" for obj in objs if (users := embedding_models.users_of(obj))]
        return [str(obj) for obj in objs], {"embedding models": len(objs)}, set(), used

    def delete_model(self, request: HttpRequest, obj: EmbeddingModel) -> None:
        embedding_models.delete_model(obj)

    @action(description="Try it", icon="experiment", url_path="try")
    def try_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        found = self.get_object(request, object_id)
        if found is None or not self.may_change(request, found):
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        try:
            probe = embedding_models.probe_model(found, organization_id=actor_of(request, found.organization).organization.id)
        except LecternError as error:
            messages.error(request, error.message)
        else:
            alike = f"two sentences that mean nearly the same are {probe.similarity:.2f} alike"
            messages.success(request, f"{probe.dimension} numbers in {probe.milliseconds:.0f} ms; {alike}.")
        return HttpResponseRedirect(reverse("admin:kb_embeddingmodel_change", args=[object_id]))
