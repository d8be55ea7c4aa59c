"""Tables that became data. Read only: they come and go with their documents."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from kb import access
from kb.access import Actor
from kb.admin.rows import RowAdmin, ShownOnly
from kb.models import Dataset, DatasetPart

PARTS_SHOWN = 100


@admin.register(Dataset)
class DatasetAdmin(ShownOnly, RowAdmin):
    """Those of which the person may read a file, with the numbers of all its files that he may."""

    list_display = ("name", "knowledge_base", "source_name", "rows_shown", "files_shown", "size_shown", "updated_at")
    list_filter = (("knowledge_base", admin.RelatedOnlyFieldListFilter), ("source", admin.RelatedOnlyFieldListFilter))
    search_fields = ("name",)
    list_select_related = ("knowledge_base", "source")
    fields = ("id", "name", "knowledge_base", "source", "rows_shown", "files_shown", "size_shown", "columns_shown", "parts_shown")
    readonly_fields = ("id", "rows_shown", "files_shown", "size_shown", "columns_shown", "parts_shown")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Dataset]:
        totals = {"rows": Sum("parts__rows"), "size": Sum("parts__size"), "files": Count("parts__document", distinct=True)}
        return super().get_queryset(request).annotate(**totals)

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=access.rows(actor, DatasetPart).values("dataset"))

    @admin.display(description="source", ordering="source__name")
    def source_name(self, obj: Dataset) -> str:
        return obj.source.name

    @admin.display(description="rows", ordering="rows")
    def rows_shown(self, obj: Any) -> str:
        return f"{obj.rows or 0:,}"

    @admin.display(description="files", ordering="files")
    def files_shown(self, obj: Any) -> int:
        return obj.files

    @admin.display(description="size", ordering="size")
    def size_shown(self, obj: Any) -> str:
        return filesizeformat(obj.size or 0)

    @admin.display(description="columns")
    def columns_shown(self, obj: Dataset) -> SafeString:
        """Of its newest file."""
        newest = obj.parts.order_by("-id").first()
        columns = ((column["name"], column["type"]) for column in (newest.columns if newest else ()))
        return format_html_join("", '<div>{} <span style="opacity: .7">{}</span></div>', columns)

    @admin.display(description="parts")
    def parts_shown(self, obj: Dataset) -> SafeString:
        parts = obj.parts.select_related("document").order_by("id")[:PARTS_SHOWN]
        rows = ((part.document.key[:120], part.sheet, f"{part.rows:,}", filesizeformat(part.size)) for part in parts)
        shown = format_html_join("", "<div>{} {} · {} rows · {}</div>", rows)
        return shown or format_html("{}", "none: it goes with the next housekeeping")


@admin.register(DatasetPart)
class DatasetPartAdmin(ShownOnly, RowAdmin):
    list_display = ("dataset", "document", "sheet", "rows", "size", "created_at")
    list_select_related = ("dataset", "document")
    fields = ("dataset", "document", "sheet", "rows", "size", "partition", "columns", "blob", "created_at")

    def seen_by(self, actor: Actor) -> Q:
        return Q(pk__in=access.rows(actor, DatasetPart).values("pk"))
