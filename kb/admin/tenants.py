"""Organizations, who is in them, and what lets programs in."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminPasswordWidget

from kb import access, services
from kb.access import Actor, Level
from kb.admin.rows import RowAdmin, ServiceForm, ShownOnly, actor_of, actors, adopt
from kb.models import ApiKey, Grant, IdempotencyKey, Membership, Organization, Secret, User


class OperatorOnly:
    """Pages of the whole installation."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser


@admin.register(User)
class UserAdmin(OperatorOnly, DjangoUserAdmin, ModelAdmin):
    """Accounts. Rights in an organization come from memberships; `superuser` is the installation's operator."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")


class OrganizationForm(ServiceForm):
    class Meta:
        model = Organization
        fields = ("name",)


@admin.register(Organization)
class OrganizationAdmin(RowAdmin):
    form = OrganizationForm
    list_display = ("name", "state", "created_at")
    search_fields = ("name",)

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk=actor.organization.pk)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def may_change(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser or any(
            actor.level >= Level.ADMIN and (obj is None or actor.organization.pk == obj.pk) for actor in actors(request)
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        lines = [line for obj in objs for line in (str(obj), ["every knowledge base, document and file of it"])]
        return lines, {"organizations": len(objs)}, set(), []

    def save_model(self, request: HttpRequest, obj: Organization, form: Any, change: bool) -> None:
        if change:
            services.rename_organization(obj, name=form.cleaned_data["name"])
        else:
            adopt(obj, services.create_organization(name=form.cleaned_data["name"]))

    def delete_model(self, request: HttpRequest, obj: Organization) -> None:
        services.delete_organization(obj)


class AdministratorsRows(RowAdmin):
    """Rows that an organization's administrators see and change."""

    level = Level.ADMIN
    list_filter = (("organization", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("organization",)


class MembershipForm(ServiceForm):
    class Meta:
        model = Membership
        fields = ("organization", "user", "role")


@admin.register(Membership)
class MembershipAdmin(AdministratorsRows):
    """Operators put accounts into organizations; administrators change roles and take members out."""

    form = MembershipForm
    list_display = ("user", "organization", "role", "created_at")
    search_fields = ("user__username", "user__email")
    list_select_related = ("organization", "user")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("organization", "user") if obj else ()

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        data = form.cleaned_data
        if change:
            adopt(obj, services.change_member(obj.organization, user_id=obj.user_id, role=data["role"]))
        else:
            adopt(obj, services.add_member(data["organization"], user=data["user"], role=data["role"]))

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        services.remove_member(obj.organization, user_id=obj.user_id)


class ApiKeyForm(ServiceForm):
    class Meta:
        model = ApiKey
        fields = ("organization", "name", "role", "knowledge_base_ids", "expires_at")


@admin.register(ApiKey)
class ApiKeyAdmin(AdministratorsRows):
    """A key's value is shown once, on the page that follows its making. Deleting a key revokes it; its row stays."""

    form = ApiKeyForm
    list_display = ("name", "prefix", "organization", "role", "expires_at", "revoked_at", "last_used_at")
    search_fields = ("name", "prefix")
    list_filter = ("role", *AdministratorsRows.list_filter)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        made = ("prefix", "created_by", "created_at", "revoked_at", "last_used_at") if obj else ()
        return ("organization", "name", "role", "knowledge_base_ids", "expires_at", *made)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        data = form.cleaned_data
        access.require(actor_of(request, data["organization"]), Level.ADMIN)
        key, request.lectern_key_value = services.create_api_key(
            data["organization"],
            name=data["name"],
            role=data["role"],
            knowledge_base_ids=data["knowledge_base_ids"],
            expires_at=data["expires_at"],
            created_by=request.user,
        )
        adopt(obj, key)

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: Any = None) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "opts": self.opts, "title": "The new API key", "key": obj}
        context["value"] = request.lectern_key_value
        response = TemplateResponse(request, "kb/admin/api_key.html", context)
        response["Cache-Control"] = "no-store"
        return response

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        return [f"{obj} is revoked at once and for good" for obj in objs], {"API keys": len(objs)}, set(), []

    def delete_model(self, request: HttpRequest, obj: ApiKey) -> None:
        services.revoke_api_key(obj)


class SecretForm(ServiceForm):
    value = forms.CharField(
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        strip=False,
        help_text="Never shown again. It replaces what was stored.",
    )

    class Meta:
        model = Secret
        fields = ("organization", "name")


@admin.register(Secret)
class SecretAdmin(AdministratorsRows):
    """Values go in and never come out."""

    form = SecretForm
    list_display = ("name", "organization", "created_at", "updated_at")
    search_fields = ("name",)
    fields = ("organization", "name", "value")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("organization", "name") if obj else ()

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change=change, **{**kwargs, "fields": () if obj else ("organization", "name")})

    def save_model(self, request: HttpRequest, obj: Secret, form: Any, change: bool) -> None:
        data = form.cleaned_data
        organization = obj.organization if change else data["organization"]
        actor = actor_of(request, organization)
        access.require(actor, Level.ADMIN)
        if organization is None:
            access.require_operator(actor)
        adopt(obj, services.set_secret(organization=organization, name=obj.name if change else data["name"], value=data["value"]))


@admin.register(Grant)
class GrantAdmin(ShownOnly, RowAdmin):
    """Every grant at a glance; they are given on the page of their knowledge base."""

    within_knowledge_base = True
    level = Level.EDIT
    list_display = ("user", "knowledge_base", "level", "created_at")
    list_filter = ("level", ("knowledge_base", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user", "knowledge_base")


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ShownOnly, OperatorOnly, RowAdmin):
    list_display = ("id", "organization", "status", "created_at")
    fields = ("organization", "status", "created_at")
