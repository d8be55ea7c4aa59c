"""Knowledge bases: the current document as a text, its history, and what is made from it."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.decorators import action

from config.errors import LecternError
from config.registry import Registry
from kb import access, listing, services, versioning
from kb.access import Actor
from kb.admin.bundles import BundlePages
from kb.admin.documents import DocumentForm, told
from kb.admin.rows import RowAdmin, actor_of
from kb.admin.text import counted, document_of, text_of
from kb.bundles.texts import write_document
from kb.embedding_status import look
from kb.models import Grant, KnowledgeBase, Membership, User


class GrantForm(forms.ModelForm):
    class Meta:
        model = Grant
        fields = ("user", "level")


class GrantInline(TabularInline):
    """Whom a private knowledge base is open to, besides the organization's administrators."""

    model = Grant
    form = GrantForm
    extra = 0
    verbose_name_plural = "open to"

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        match = request.resolver_match
        found = KnowledgeBase.objects.filter(pk=match.kwargs.get("object_id")).first() if match and match.kwargs.get("object_id") else None
        if db_field.name == "user":
            members = Membership.objects.filter(organization=found.organization_id if found else None)
            kwargs["queryset"] = User.objects.filter(id__in=members.values("user_id"))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    # Who may change the knowledge base may change its grants; the page itself was checked.
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is None or RowAdmin.may_change(admin.site._registry[KnowledgeBase], request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(BundlePages, RowAdmin):
    form = DocumentForm
    list_display = ("name", "organization", "version", "visibility", "documents_held", "created_at")
    list_filter = (("organization", admin.RelatedOnlyFieldListFilter), "visibility", "hidden")
    search_fields = ("name", "description")
    list_select_related = ("organization", "current")
    actions_detail = ("history", "what_changed", "duplicate", "export_yaml", "export_zip")
    warn_unsaved_form = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[KnowledgeBase]:
        return super().get_queryset(request).filter(state=KnowledgeBase.State.ACTIVE).annotate(document_total=Count("documents"))

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=access.knowledge_bases(actor).values("pk"))

    def get_fieldsets(self, request: HttpRequest, obj: KnowledgeBase | None = None) -> Any:
        if obj is None:
            return [(None, {"fields": ("organization", "document", "comment")})]
        if not self.has_change_permission(request, obj):
            return [(None, {"fields": ("name", "version", "contents", "embeddings", "document_shown")})]
        return [(None, {"fields": ("version", "contents", "embeddings", "document", "removes", "comment", "expected")})]

    def get_readonly_fields(self, request: HttpRequest, obj: KnowledgeBase | None = None) -> tuple[str, ...]:
        return ("version", "contents", "embeddings", "document_shown", "name") if obj else ()

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        # The document's fields are no model fields, so that the factory must not look for them.
        return super().get_form(request, obj, change=change, **{**kwargs, "fields": () if obj else ("organization",)})

    def get_inlines(self, request: HttpRequest, obj: KnowledgeBase | None) -> list[Any]:
        return [GrantInline] if obj else []

    @admin.display(description="version", ordering="current__number")
    def version(self, obj: KnowledgeBase) -> str:
        return str(obj.current.number) if obj.current else "-"

    @admin.display(description="documents", ordering="document_total")
    def documents_held(self, obj: Any) -> int:
        return obj.document_total

    @admin.display(description="holds")
    def contents(self, obj: KnowledgeBase) -> SafeString:
        above = (
            "ingestion_ingestionrun",
            "kb_knowledgebaseversion",
            "retrieval_judgement",
            "retrieval_evaluation",
            "retrieval_recallcheck",
        )
        pages = ("kb_source", "kb_document", "kb_chunk", None, *above)
        lines = [*_lines(obj), "runs", "versions", "judgements", "evaluations", "recall checks"]
        return format_html_join(" · ", "{}", ((_rows_link(page, obj, line),) for page, line in zip(pages, lines, strict=True)))

    @admin.display(description="embeddings")
    def embeddings(self, obj: KnowledgeBase) -> SafeString:
        """A line, and a banner where they are stale; the buttons are on the page behind it."""
        status = look(obj)
        page = reverse("admin:kb_spacechange_embeddings", args=[obj.pk])
        if not status.stale:
            line = f"{counted(status.chunks, 'chunk')} by {status.answering.name}"
            return format_html('<a href="{}" class="text-primary-600">{}</a>', page, line)
        banner = (
            '<p class="text-red-600 font-medium">{}</p>'
            '<a href="{}" class="bg-primary-600 font-medium px-3 py-2 rounded-default text-white inline-block">Re-embed …</a>'
        )
        return format_html(banner, status.reason, page)

    @admin.display(description="document")
    def document_shown(self, obj: KnowledgeBase) -> SafeString:
        return format_html('<pre style="white-space: pre-wrap">{}</pre>', text_of(versioning.read(obj)))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """What to know of it is told at the top, and so is a refusal: its errors stand below a text box taller than most screens."""
        if request.method == "GET" and context.get("original"):
            notices: Registry[Callable[[KnowledgeBase], Iterable[str]]] = Registry("notice", settings.NOTICES)
            for notice in (text for name in notices.names() for text in notices.load(name)(context["original"])):
                messages.warning(request, notice)
        if request.method == "POST":
            for field, faults in context["adminform"].form.errors.items():
                for fault in faults:
                    messages.error(request, fault if field in ("document", "removes", "__all__") else f"{field}: {fault}")
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: KnowledgeBase, form: Any, change: bool) -> None:
        data = form.cleaned_data
        if not change:
            made = services.create_knowledge_base(
                actor_of(request, data["organization"]), document=data["document"], comment=data["comment"]
            )
            obj.pk, obj.name, obj.organization_id = made.pk, made.name, made.organization_id
            obj._state.adding = False
            return
        actor = actor_of(request, obj.organization)
        access.get_knowledge_base(actor, obj.pk, access.Level.EDIT)
        if data["document"] != document_of(versioning.read(obj)):
            versioning.publish(obj, document=data["document"], expected=data["expected"], actor=actor, comment=data["comment"])

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Grants, by their service."""
        for row in formset.save(commit=False):
            services.set_grant(form.instance, user_id=row.user_id, level=row.level)
        for row in formset.deleted_objects:
            services.remove_grant(form.instance, user_id=row.user_id)
        formset.save_m2m()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Counts instead of a tree: a knowledge base may hold a million chunks."""
        counts: dict[str, int] = {"knowledge bases": len(objs)}
        for obj in objs:
            held = listing.contents(obj)
            for name in ("sources", "documents", "chunks", "files"):
                counts[name] = counts.get(name, 0) + getattr(held, name)
        return [line for obj in objs for line in (str(obj), _lines(obj))], counts, set(), []

    def delete_model(self, request: HttpRequest, obj: KnowledgeBase) -> None:
        services.delete_knowledge_base(obj)

    @action(description="History", icon="history", url_path="history")
    def history(self, request: HttpRequest, object_id: str) -> HttpResponse:
        url = reverse("admin:kb_knowledgebaseversion_changelist")
        return HttpResponseRedirect(f"{url}?knowledge_base__id__exact={object_id}")

    @action(description="What changed", icon="difference", url_path="what-changed")
    def what_changed(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:kb_knowledgebase_diff", args=[object_id]))

    @action(description="Duplicate", icon="content_copy", url_path="duplicate")
    def duplicate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        found = self.get_object(request, object_id)
        if found is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if request.method == "POST":
            try:
                copied = services.duplicate_knowledge_base(actor_of(request, found.organization), found, name=request.POST.get("name", ""))
            except LecternError as error:
                messages.error(request, error.message)
            else:
                messages.success(request, f"“{copied}” has the configuration of “{found}” and empty upload sources.")
                return HttpResponseRedirect(reverse("admin:kb_knowledgebase_change", args=[copied.pk]))
        return self.page(request, "duplicate", found, title=f"Duplicate {found}", name=request.POST.get("name", f"{found} (copy)"))

    def get_urls(self) -> list[Any]:
        diff = path("<path:object_id>/diff/", self.admin_site.admin_view(self.diff_view), name="kb_knowledgebase_diff")
        view = self.admin_site.admin_view(self.rollback_view)
        back = path("<path:object_id>/rollback/<int:number>/", view, name="kb_knowledgebase_rollback")
        return [diff, back, *super().get_urls()]

    def diff_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What changed between two versions of the query, `from` and `to`."""
        found = self.get_object(request, object_id)
        if found is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        try:
            compared = versioning.compare(found, old=_number(request, "from"), new=_number(request, "to"))
        except LecternError as error:
            messages.error(request, error.message)
            compared = versioning.compare(found)
        numbers = list(listing.versions(found).values_list("number", flat=True)[:500])
        return self.page(request, "diff", found, title=f"What changed in {found}", compared=compared, numbers=numbers)

    def rollback_view(self, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
        """Ask, then publish an old version again."""
        found = self.get_object(request, object_id)
        if found is None or not self.has_change_permission(request, found):
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        try:
            compared = versioning.compare(found, old=found.current.number, new=number)
            if request.method == "POST":
                expected, comment = _posted_number(request), request.POST.get("comment", "")[:1000]
                versioning.roll_back(found, to=number, expected=expected, actor=actor_of(request, found.organization), comment=comment)
                messages.success(request, f"Version {number} is current again, as version {found.current.number}.")
                return HttpResponseRedirect(reverse("admin:kb_knowledgebase_change", args=[found.pk]))
            document = versioning.restored(found, number)
            removals = versioning.find_removals(found, document=document, expected=found.current.number)
        except LecternError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(reverse("admin:kb_knowledgebase_diff", args=[found.pk]))
        removed = told(removals) if removals else ""
        return self.page(request, "rollback", found, title=f"Roll {found} back to version {number}", compared=compared, removed=removed)

    def page(self, request: HttpRequest, template: str, found: KnowledgeBase | None, **values: Any) -> TemplateResponse:
        context = {**self.admin_site.each_context(request), "opts": self.opts, "knowledge_base": found, "original": found, **values}
        if compared := values.get("compared"):
            context["changes"] = [(change, write_value(change.old), write_value(change.new)) for change in compared.changes]
        return TemplateResponse(request, f"kb/admin/{template}.html", context)


def write_value(value: Any) -> str | None:
    """One side of a change as people read it; None for what was not there."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        return write_document(value).rstrip()
    return json.dumps(value)


def _lines(obj: KnowledgeBase) -> list[str]:
    held = listing.contents(obj)
    counts = [(held.sources, "source"), (held.documents, "document"), (held.chunks, "chunk"), (held.files, "file")]
    return [counted(count, name) for count, name in counts]


def _rows_link(page: str | None, obj: KnowledgeBase, line: str) -> SafeString | str:
    """The line as a link to those rows of the knowledge base; as it is without a page."""
    if page is None:
        return line
    url = f"{reverse(f'admin:{page}_changelist')}?knowledge_base__id__exact={obj.pk}"
    return format_html('<a href="{}" class="text-primary-600">{}</a>', url, line)


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _posted_number(request: HttpRequest) -> int:
    text = request.POST.get("expected", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
