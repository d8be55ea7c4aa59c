"""What every page of the admin has: only rows that the person may see, and errors of services as errors of the form."""

from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.admin import ModelAdmin

from config.errors import LecternError
from kb import access
from kb.access import Actor, Level
from kb.models import KnowledgeBase, Membership, Organization


def actors(request: HttpRequest) -> list[Actor]:
    """A person as a member of each of their organizations; of none for who is no member."""
    if not hasattr(request, "lectern_actors"):
        memberships = Membership.objects.filter(user_id=request.user.pk, organization__state=Organization.State.ACTIVE)
        ids = memberships.values_list("organization_id", flat=True)
        request.lectern_actors = [access.actor_for_user(request.user, identifier) for identifier in ids]
    return request.lectern_actors


def actor_of(request: HttpRequest, organization: Organization | None) -> Actor:
    """Who acts on a row of an organization (None: of the installation, which only an operator does)."""
    return access.actor_for_user(request.user, organization.id if organization else None)


class ServiceForm(forms.ModelForm):
    """A form that a service saves: its refusal comes back as errors of the form, and what was typed is kept."""

    refusal: ClassVar[LecternError | None] = None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.refusal is not None:
            for path, message in self.sentences(self.refusal):
                self.add_error(path, message)
        return cleaned

    def sentences(self, refusal: LecternError) -> list[tuple[str | None, str]]:
        """(field or None for the whole form, message) of each fault."""
        found = []
        for fault in refusal.extra.get("errors", ()):
            field = fault["path"].partition(".")[0]
            known = field in self.fields
            found.append((field if known else None, fault["message"] if known else f"{fault['path']}: {fault['message']}"))
        return found or [(None, refusal.message)]

    def _post_clean(self) -> None:
        """The service validates, not the model: one set of rules for API, admin and import."""


class RowAdmin(ModelAdmin):
    """Operators see every row, other staff those of their organizations, as `kb.access` says."""

    form = ServiceForm
    show_full_result_count = False
    list_per_page = 50
    level: ClassVar[Level] = Level.VIEW  # what a member needs to see such rows of the organization at all
    within_knowledge_base: ClassVar[bool] = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        seen = Q(pk__in=[])
        for actor in actors(request):
            seen |= self.seen_by(actor)
        return rows.filter(seen)

    def seen_by(self, actor: Actor) -> Q:
        if self.within_knowledge_base:
            return Q(organization=actor.organization, knowledge_base__in=access.knowledge_bases(actor, self.level).values("id"))
        return Q(organization=actor.organization) if actor.level >= self.level else Q(pk__in=[])

    def may_change(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the person may change such rows, or this one; the service has the last word."""
        if request.user.is_superuser:
            return True
        level = max(self.level, Level.EDIT)
        if obj is None:
            return any(actor.level >= level for actor in actors(request))
        if isinstance(obj, KnowledgeBase):
            return any(access.knowledge_bases(actor, Level.EDIT).filter(pk=obj.pk).exists() for actor in actors(request))
        return any(actor.organization.id == obj.organization_id and actor.level >= level for actor in actors(request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser or any(actor.level >= self.level for actor in actors(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may_change(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may_change(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may_change(request, obj)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A choice lists what the person may choose, in every form."""
        if not request.user.is_superuser and db_field.name == "organization":
            ids = [actor.organization.id for actor in actors(request) if actor.level >= max(self.level, Level.EDIT)]
            kwargs["queryset"] = Organization.objects.filter(id__in=ids)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> type[forms.ModelForm]:
        made = super().get_form(request, obj, change=change, **kwargs)
        made.refusal = getattr(request, "lectern_refusal", None)
        return made

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except LecternError as error:
            if request.method != "POST" or hasattr(request, "lectern_refusal"):
                raise
            request.lectern_refusal = error  # everything was rolled back; the form is shown again and says why
            return super().changeform_view(request, object_id, form_url, extra_context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except LecternError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[object_id]))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            try:
                self.delete_model(request, row)
            except LecternError as error:
                messages.error(request, f"{row}: {error.message}")


class ShownOnly:
    """Rows that the product writes and people only read."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def adopt(obj: Any, saved: Any) -> None:
    """Make the admin's unsaved object the row that a service made."""
    for field in obj._meta.concrete_fields:
        setattr(obj, field.attname, getattr(saved, field.attname))
    obj._state.adding, obj._state.db = False, saved._state.db


class InstallationRowAdmin(RowAdmin):
    """Rows of an organization, changed by its administrators, or of the installation, changed by operators alone."""

    def may_change(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser or any(
            actor.level >= Level.ADMIN and (obj is None or actor.organization.pk == obj.organization_id) for actor in actors(request)
        )

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if isinstance(field, forms.ModelChoiceField) and not request.user.is_superuser:
            field.required = True
        return field

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("organization",) if obj else ()
