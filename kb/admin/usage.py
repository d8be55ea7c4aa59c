"""What embedding cost, by month."""

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import HttpRequest

from kb.admin.rows import RowAdmin, ShownOnly
from kb.models import Usage
from kb.usage import SUMS

SAME = ("organization", "knowledge_base", "month", "model", "purpose")


@admin.register(Usage)
class UsageAdmin(ShownOnly, RowAdmin):
    """A line for each month, knowledge base, model and purpose: of the rows that a sum is spread over the first stands for all."""

    within_knowledge_base = True
    list_display = ("month", "knowledge_base", "model", "purpose", "requests_shown", "texts_shown", "tokens_shown", "cost_shown")
    list_filter = ("month", "purpose", ("knowledge_base", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("knowledge_base",)
    ordering = ("-month", "knowledge_base__name", "model", "purpose")
    fields = (*SAME, "requests_shown", "texts_shown", "tokens_shown", "cost_shown")
    readonly_fields = ("requests_shown", "texts_shown", "tokens_shown", "cost_shown")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Usage]:
        same = Usage.objects.filter(**{name: OuterRef(name) for name in SAME})
        sums = {f"sum_of_{name}": Subquery(same.values(*SAME).annotate(of=total).values("of")) for name, total in SUMS.items()}
        return super().get_queryset(request).filter(~Exists(same.filter(slot__lt=OuterRef("slot")))).annotate(**sums)

    @admin.display(description="requests", ordering="sum_of_requests")
    def requests_shown(self, obj: Usage) -> str:
        return f"{obj.sum_of_requests:,}"

    @admin.display(description="texts", ordering="sum_of_texts")
    def texts_shown(self, obj: Usage) -> str:
        return f"{obj.sum_of_texts:,}"

    @admin.display(description="tokens", ordering="sum_of_tokens")
    def tokens_shown(self, obj: Usage) -> str:
        return f"{obj.sum_of_tokens:,}"

    @admin.display(description="cost", ordering="sum_of_cost")
    def cost_shown(self, obj: Usage) -> str:
        return f"{obj.sum_of_cost:,.4f}"
