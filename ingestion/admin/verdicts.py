"""What became of each document of a run."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat

from ingestion.models import RunItem
from kb import access
from kb.access import Actor
from kb.admin.rows import RowAdmin, ShownOnly
from kb.models import Document, Source


@admin.register(RunItem)
class RunItemAdmin(ShownOnly, RowAdmin):
    list_display = (
        "key",
        "title",
        "stage",
        "verdict",
        "reason",
        "error",
        "status",
        "depth",
        "led_there",
        "chunks",
        "size_shown",
        "changed_at",
    )
    list_filter = ("verdict", "reason", "stage", "via")
    search_fields = ("key", "title", "url")
    readonly_fields = ("status", "led_there", "size_shown")
    ordering = ("-id",)
    exclude = ("key_hash", "content_hash", "text_hashes", "passages", "extracted", "lease_token", "blob", "markdown")

    @admin.display(description="HTTP")
    def status(self, item: RunItem) -> str:
        return str((item.response or {}).get("status", "-"))

    @admin.display(description="found on")
    def led_there(self, item: RunItem) -> str:
        return item.led_there or item.via or "-"

    @admin.display(description="size", ordering="size")
    def size_shown(self, item: RunItem) -> str:
        return filesizeformat(item.size)

    def seen_by(self, actor: Actor) -> Q:
        seen = Q(organization=actor.organization, run__knowledge_base__in=access.knowledge_bases(actor).values("id"))
        return seen & (~Q(run__source__kind=Source.Kind.CHANNEL) | Q(document__in=access.rows(actor, Document).values("pk")))

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunItem]:
        pages = RunItem.objects.filter(id=OuterRef("found_on")).values("url")[:1]
        return super().get_queryset(request).annotate(led_there=Subquery(pages)).defer("passages", "text_hashes", "extracted")

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return lookup == "run__id__exact" or super().lookup_allowed(lookup, value, request)
