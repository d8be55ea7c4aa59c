"""When sources run by themselves, and what became of each time. Both follow the published version, and are only read here."""

from typing import ClassVar

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.decorators import display

from ingestion.admin.confirmations import page_of
from ingestion.models import ScheduleFire, SourceSchedule
from kb import access
from kb.access import Actor
from kb.admin.rows import RowAdmin, ShownOnly

COLOURS = {"started": "success", "already_running": "info", "skipped": "warning", "failed": "danger"}


class SourceRows(ShownOnly, RowAdmin):
    """Rows that hang on a source: seen by who sees its knowledge base."""

    list_select_related: ClassVar[tuple[str, ...]] = ("source__knowledge_base",)
    search_fields = ("source__name", "source__knowledge_base__name")

    def seen_by(self, actor: Actor) -> Q:
        return Q(organization=actor.organization, source__knowledge_base__in=access.knowledge_bases(actor).values("id"))


@admin.register(SourceSchedule)
class SourceScheduleAdmin(SourceRows):
    list_display = ("source", "cron", "due_at")
    ordering = ("due_at",)


@admin.register(ScheduleFire)
class ScheduleFireAdmin(SourceRows):
    list_display = ("due_at", "source", "coloured_outcome", "run_link", "error", "created_at")
    list_filter = ("outcome",)
    list_select_related = ("source__knowledge_base", "run__source__knowledge_base")
    ordering = ("-created_at",)

    @display(description="outcome", ordering="outcome", label=COLOURS)
    def coloured_outcome(self, fire: ScheduleFire) -> str:
        return fire.outcome

    @admin.display(description="run")
    def run_link(self, fire: ScheduleFire) -> str:
        return format_html('<a href="{}">{}</a>', page_of(fire.run), fire.run.status) if fire.run else "-"

    def lookup_allowed(self, lookup: str, value: object, request: HttpRequest | None = None) -> bool:
        return lookup == "source__id__exact" or super().lookup_allowed(lookup, value, request)
