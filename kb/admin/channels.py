"""Channels with their policies, and the services that policies may name."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from kb import access, bindings, channels
from kb.access import Actor, Level
from kb.admin.rows import InstallationRowAdmin, RowAdmin, ServiceForm, actor_of, actors, adopt
from kb.models import Channel, KnowledgeBase, ServiceBinding, Source
from kb.schemas.families import FAMILIES

SHOWN_FAMILIES = ("text", "pdf", "tabular", "audio")


class ChannelForm(ServiceForm):
    class Meta:
        model = Channel
        fields = ("knowledge_base", "name", "description", "policy", "is_default")

    def wanted(self) -> channels.ChannelInput:
        data = self.cleaned_data
        knowledge_base = data.get("knowledge_base") or self.instance.knowledge_base
        return channels.ChannelInput(data["name"], knowledge_base.pk, data["description"], data["policy"] or {}, data["is_default"])


@admin.register(Channel)
class ChannelAdmin(RowAdmin):
    """A channel's files are taken in as they come; what each key of its policy comes to, its page shows."""

    form = ChannelForm
    within_knowledge_base = True
    list_display = ("name", "knowledge_base", "is_default", "created_by", "created_at")
    list_filter = (("knowledge_base", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("knowledge_base", "created_by")
    search_fields = ("name", "description")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Channel]:
        return super().get_queryset(request).filter(source__state=Source.State.ACTIVE)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*ChannelForm.Meta.fields, *(("merged", "created_by", "created_at", "updated_at") if obj else ()))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("knowledge_base", "merged", "created_by", "created_at", "updated_at") if obj else ()

    def may_change(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().may_change(request, obj.knowledge_base if obj is not None else None)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "knowledge_base":
            rows = KnowledgeBase.objects.filter(state=KnowledgeBase.State.ACTIVE)
            mine = [access.knowledge_bases(actor, Level.EDIT).values("pk") for actor in actors(request)]
            seen = Q(pk__in=[])
            for ids in mine:
                seen |= Q(pk__in=ids)
            kwargs["queryset"] = rows if request.user.is_superuser else rows.filter(seen)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Channel, form: Any, change: bool) -> None:
        wanted = form.wanted()
        organization = (obj if change else form.cleaned_data["knowledge_base"]).organization
        actor = actor_of(request, organization)
        if change:
            found = channels.get_channel(actor, obj.pk, Level.EDIT)
            adopt(obj, channels.change_channel(actor, found, wanted=wanted))
        else:
            adopt(obj, channels.create_channel(actor, wanted=wanted))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        return [f"{obj} with every file of it" for obj in objs], {"channels": len(objs)}, set(), []

    def delete_model(self, request: HttpRequest, obj: Channel) -> None:
        channels.delete_channel(channels.get_channel(actor_of(request, obj.organization), obj.pk, Level.EDIT))

    @admin.display(description="merged policy")
    def merged(self, obj: Channel) -> SafeString:
        """What differs from the defaults, for some families, and who said so."""
        found = [(family, channels.explain_policy(obj, family=family)) for family in SHOWN_FAMILIES if family in FAMILIES]
        lines = (
            (family, path, _value_at(merged.values, path), origin)
            for family, merged in found
            for path, origin in sorted(merged.origins.items())
            if origin != "default"
        )
        rows = format_html_join("", "<tr><td>{}</td><td><code>{}</code></td><td>{}</td><td>{}</td></tr>", lines)
        return format_html(
            "<table><tr><th>family</th><th>key</th><th>value</th><th>said by</th></tr>{}</table>"
            "<p>Everything else is at its default. GET …/channels/{}/policy explains any file.</p>",
            rows,
            obj.pk,
        )


def _value_at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values


class BindingForm(ServiceForm):
    class Meta:
        model = ServiceBinding
        fields = ("organization", "purpose", "endpoint", "credential", "model", "is_default")

    def document(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("purpose", "endpoint", "credential", "model", "is_default")}


@admin.register(ServiceBinding)
class ServiceBindingAdmin(InstallationRowAdmin):
    """An endpoint and the secret that may be sent there. Without an organization it serves all of them, and only an operator changes it."""

    form = BindingForm
    list_display = ("purpose", "endpoint", "credential", "model", "is_default", "organization")
    list_filter = ("purpose", ("organization", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("organization",)
    search_fields = ("endpoint",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=access.service_bindings(actor).values("pk"))

    def save_model(self, request: HttpRequest, obj: ServiceBinding, form: Any, change: bool) -> None:
        organization = obj.organization if change else form.cleaned_data["organization"]
        actor = actor_of(request, organization)
        if change:
            found = bindings.get_binding(actor, obj.pk, change=True)
            adopt(obj, bindings.change_binding(found, document=form.document()))
        else:
            adopt(obj, bindings.bind_service(actor, document=form.document(), installation=organization is None))

    def delete_model(self, request: HttpRequest, obj: ServiceBinding) -> None:
        bindings.delete_binding(bindings.get_binding(actor_of(request, obj.organization), obj.pk, change=True))
