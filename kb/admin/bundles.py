"""Bundles in the admin: export from the page and the list of knowledge bases, import by a page that shows first what would happen."""

from base64 import b64decode, b64encode
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import action as list_action
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action

from config.errors import InvalidInput, LecternError, NotFound
from kb import transfers
from kb.admin.rows import actor_of, actors
from kb.api.bundles import download
from kb.bundles.archives import MAX_PACKED
from kb.models import KnowledgeBase, Organization


class ImportForm(forms.Form):
    """A bundle as a file, or as `content` from the page that showed what it would do."""

    organization = forms.ModelChoiceField(Organization.objects.none())
    bundle = forms.FileField(required=False)
    content = forms.CharField(required=False)
    name = forms.CharField(required=False, max_length=200)
    rename = forms.BooleanField(required=False)
    models = forms.CharField(required=False)

    def read(self) -> tuple[bytes, str]:
        file = self.cleaned_data["bundle"]
        if file is not None:
            return file.read(MAX_PACKED + 1), _printable(file.name)
        try:
            return b64decode(self.cleaned_data["content"], validate=True), _printable(self.data.get("file_name", ""))
        except ValueError:
            raise InvalidInput("Choose the file again.") from None

    def mapping(self) -> dict[str, str]:
        found = {}
        for line in self.cleaned_data["models"].replace(",", "\n").splitlines():
            old, separator, new = (part.strip() for part in line.rpartition("="))
            if line.strip() and not (separator and old and new):
                raise InvalidInput(f"'{line.strip()[:100]}' is no mapping of embedding models. Write OLD=NEW.")
            if line.strip():
                found[old] = new
        return found


def _printable(name: str) -> str:
    return "".join(character for character in name[:255] if character.isprintable()) or "The bundle"


class BundlePages:
    """What `KnowledgeBaseAdmin` has of bundles."""

    actions = ("export_selected",)
    actions_list = ("import_bundle",)

    @action(description="Export YAML", icon="download", url_path="export-yaml")
    def export_yaml(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.export_one(request, object_id, "yaml")

    @action(description="Export ZIP", icon="folder_zip", url_path="export-zip")
    def export_zip(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.export_one(request, object_id, "zip")

    def export_one(self: Any, request: HttpRequest, object_id: str, form: str) -> HttpResponse:
        found = self.get_object(request, object_id)
        if found is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return download(*transfers.bundle_file([transfers.export(found)], form=form), form=form)

    @list_action(description="Export as ZIP")
    def export_selected(self: Any, request: HttpRequest, queryset: QuerySet[KnowledgeBase]) -> HttpResponse | None:
        try:
            exports = [transfers.export(found) for found in queryset.order_by("name")]
        except NotFound as error:
            messages.error(request, error.message)
            return None
        return download(*transfers.bundle_file(exports, form="zip"), form="zip")

    @action(description="Import", icon="upload", url_path="import", permissions=["add"])
    def import_bundle(self: Any, request: HttpRequest) -> HttpResponse:
        """Ask for a file, show what it would make, then make it."""
        form = ImportForm(request.POST or None, request.FILES or None)
        form.fields["organization"].queryset = _organizations(request)
        shown: dict[str, Any] = {"form": form, "organizations": list(form.fields["organization"].queryset)}
        if request.method == "POST":
            try:
                if not form.is_valid():
                    raise InvalidInput("Choose an organization and a file.")
                data, file_name = form.read()
                outcomes, notes = self._take_in(request, form, data, file_name)
            except LecternError as error:
                messages.error(request, error.message)
            else:
                if "confirmed" in request.POST:
                    for outcome in outcomes:
                        messages.success(request, f"“{outcome.name}” was made.{_secrets(outcome)}")
                    return HttpResponseRedirect(reverse("admin:kb_knowledgebase_changelist"))
                shown |= {"outcomes": outcomes, "notes": notes, "content": b64encode(data).decode(), "file_name": file_name}
        return self.page(request, "import", None, title="Import knowledge bases", **shown)

    def _take_in(self, request: HttpRequest, form: ImportForm, data: bytes, file_name: str) -> tuple[list[Any], list[Any]]:
        entries, notes = transfers.read_entries(data, name=file_name)
        outcomes = transfers.import_entries(
            actor_of(request, form.cleaned_data["organization"]),
            entries,
            name=form.cleaned_data["name"],
            rename=form.cleaned_data["rename"],
            models=form.mapping(),
            dry_run="confirmed" not in request.POST,
        )
        return outcomes, notes


def _organizations(request: HttpRequest) -> QuerySet[Organization]:
    rows = Organization.objects.filter(state=Organization.State.ACTIVE).order_by("created_at")
    if request.user.is_superuser:
        return rows
    return rows.filter(id__in=[actor.organization.id for actor in actors(request)])


def _secrets(outcome: transfers.Outcome) -> str:
    missing = ", ".join(outcome.missing_secrets)
    return f" Store these secrets before it is used: {missing}." if missing else ""
