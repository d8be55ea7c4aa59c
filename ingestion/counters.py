"""The numbers of a run: aggregates of its items and of its calls to the provider, never counted along the way."""

from decimal import Decimal

from django.db.models import Count, Q, Sum

from ingestion.models import IngestionRun, ProviderCall, RunItem

Verdict = RunItem.Verdict


def count_items(run: IngestionRun) -> dict[str, object]:
    """Counters of PRODUCT section 4; `skipped` and `failed` by reason, `cost` in the currency of the model's price (None without one)."""
    items = RunItem.objects.filter(run=run)
    totals = items.aggregate(
        found=Count("id"),
        fetched=Count("id", filter=Q(blob__isnull=False)),
        unchanged=Count("id", filter=Q(verdict=Verdict.UNCHANGED)),
        ingested=Count("id", filter=Q(verdict=Verdict.INGESTED)),
        removed=Count("id", filter=Q(verdict=Verdict.REMOVED)),
        open=Count("id", filter=Q(verdict="")),
        chunks=Sum("chunks", filter=Q(verdict=Verdict.INGESTED), default=0),
        wanted=Sum("embeddings_computed", default=0),
        embeddings_reused=Sum("embeddings_reused", default=0),
        bytes=Sum("size", default=0),
    )
    calls = ProviderCall.objects.filter(run=run, received_at__isnull=False, error="").aggregate(
        embeddings_computed=Sum("texts", default=0), tokens=Sum("tokens", default=0), requests=Count("id")
    )
    price = run.space.embedding_model.price_per_million_tokens if run.space_id else None
    cost = str(price * Decimal(calls["tokens"]) / 1_000_000) if price is not None else None
    return {**totals, **calls, "cost": cost, **by_reason(items)}


def by_reason(items) -> dict[str, dict[str, int]]:
    grouped: dict[str, dict[str, int]] = {"skipped": {}, "failed": {}}
    rows = items.filter(verdict__in=(Verdict.SKIPPED, Verdict.FAILED)).values("verdict", "reason").annotate(number=Count("id"))
    for row in rows.order_by("verdict", "reason"):
        grouped[row["verdict"]][row["reason"] or "error"] = row["number"]
    return grouped
