"""Counting what providers are paid for, by knowledge base and month, and the ceilings that a knowledge base sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from random import randrange
from uuid import UUID

from django.db import connection
from django.db.models import F, QuerySet, Sum
from django.utils import timezone
from uuid_utils.compat import uuid7

from kb import access
from kb.access import Actor, Level
from kb.models import EmbeddingModel, KnowledgeBase, Usage
from kb.models.usage import SLOTS

_CHARGE = """
    INSERT INTO kb_usage (id, created_at, organization_id, knowledge_base_id, month, model, purpose, slot, requests, texts, tokens, cost)
    VALUES (%s, now(), %s, %s, %s, %s, %s, %s, 1, %s, %s, %s)
    ON CONFLICT (knowledge_base_id, month, model, purpose, slot) DO UPDATE
       SET requests = kb_usage.requests + 1, texts = kb_usage.texts + excluded.texts,
           tokens = kb_usage.tokens + excluded.tokens, cost = kb_usage.cost + excluded.cost
"""
SUMS = {"requests": Sum("requests"), "texts": Sum("texts"), "tokens": Sum("tokens"), "cost": Sum("cost")}


@dataclass(frozen=True, slots=True)
class Spending:
    """What a knowledge base spent in a month, its ceilings (None: none), and in words the one that is reached ("": none is)."""

    month: date
    tokens: int
    cost: Decimal
    monthly_tokens: int | None
    monthly_cost: Decimal | None

    @property
    def exhausted(self) -> str:
        if self.monthly_tokens is not None and self.tokens >= self.monthly_tokens:
            return _sentence(f"{self.tokens:,} of {self.monthly_tokens:,} tokens", "monthly_tokens")
        if self.monthly_cost is not None and self.cost >= self.monthly_cost:
            return _sentence(f"{self.cost:.2f} of {self.monthly_cost:.2f}", "monthly_cost")
        return ""


def _sentence(spent: str, name: str) -> str:
    return (
        f"The knowledge base has spent its budget of this month ({spent}). Raise budget.{name} and run again, or run again next month: "
        "what was paid is kept."
    )


def this_month(now: datetime | None = None) -> date:
    return (now or timezone.now()).astimezone(UTC).date().replace(day=1)


def price_of(model: EmbeddingModel, tokens: int) -> Decimal:
    """By the model's price; 0 where it has none."""
    return (model.price_per_million_tokens or Decimal(0)) * tokens / 1_000_000


def charge(
    *,
    organization_id: UUID,
    knowledge_bases: Sequence[UUID],
    model: EmbeddingModel,
    purpose: str,
    texts: int,
    tokens: int,
    cost: Decimal | None = None,
) -> None:
    """Count one answered call; what several knowledge bases asked for together is shared out among them. `cost` is by the model's price
    unless given."""
    ordered = sorted(knowledge_bases)
    whole = price_of(model, tokens) if cost is None else cost
    with connection.cursor() as cursor:
        for index, knowledge_base in enumerate(ordered):
            part = tokens // len(ordered) + (index < tokens % len(ordered))
            values = (uuid7(), organization_id, knowledge_base, this_month(), model.name, purpose, randrange(SLOTS))
            cursor.execute(_CHARGE, [*values, texts, part, whole / len(ordered)])


def spending(knowledge_base_id: UUID) -> Spending:
    """Of this month, against the ceilings of the version that is current now: a raised one counts at once."""
    month = this_month()
    sums = Usage.objects.filter(knowledge_base=knowledge_base_id, month=month).aggregate(tokens=Sum("tokens"), cost=Sum("cost"))
    budget = KnowledgeBase.objects.filter(id=knowledge_base_id).values_list("current__document__budget", flat=True).first() or {}
    ceiling = budget.get("monthly_cost")
    return Spending(
        month=month,
        tokens=sums["tokens"] or 0,
        cost=sums["cost"] or Decimal(0),
        monthly_tokens=budget.get("monthly_tokens"),
        monthly_cost=None if ceiling is None else Decimal(str(ceiling)),
    )


def usage_of(knowledge_base: KnowledgeBase, *, months: int) -> QuerySet[Usage]:
    """Sums of this month and those before it, by month, model and purpose, newest first."""
    return _history(Usage.objects.filter(knowledge_base=knowledge_base), months)


def usage_of_organization(actor: Actor, *, months: int) -> QuerySet[Usage]:
    """The same of all knowledge bases, those that are gone included; for administrators."""
    access.require(actor, Level.ADMIN)
    return _history(Usage.objects.filter(organization=actor.organization), months)


def _history(rows: QuerySet[Usage], months: int) -> QuerySet[Usage]:
    this = this_month()
    first = this.year * 12 + this.month - months  # months since the year 0, from 0
    grouped = rows.filter(month__gte=date(first // 12, first % 12 + 1, 1)).values(
        "month", "knowledge_base_id", "model", "purpose", name=F("knowledge_base__name")
    )
    return grouped.annotate(**SUMS).order_by("-month", "name", "model", "purpose")
