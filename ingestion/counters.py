"""The numbers of a run: aggregates of its items and of its calls to the provider, never counted along the way."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum

from ingestion.models import IngestionRun, ProviderCall, RunItem

Verdict = RunItem.Verdict


def count_items(run: IngestionRun) -> dict[str, object]:
    """Counters of PRODUCT section 4; `skipped` and `failed` by reason, `cost` in the currency of the price (None without one). `requests`
    are those to the provider of the model, `http_requests` those to a site. `parts` are pages, pictures and stretches of speech of files
    whose text is recognized; `parts_waiting` of them are still to be read."""
    items = RunItem.objects.filter(run=run)
    totals = _totals(items)
    totals["http_requests"] += (run.crawl_state or {}).get("requests", 0)  # for robots.txt, sitemaps and the like
    totals["parts_waiting"] = waiting_parts(run) if totals["parts"] and totals["open"] else 0
    calls = ProviderCall.objects.filter(run=run, received_at__isnull=False, error="").aggregate(
        embeddings_computed=Sum("texts", default=0), tokens=Sum("tokens", default=0), requests=Count("id")
    )
    return {**totals, **calls, "cost": shown_cost(run, calls["tokens"], calls["embeddings_computed"]), **by_reason(items)}


def count_part(items: QuerySet[RunItem]) -> dict[str, object]:
    """The counters of some items of a run, without those of requests to the provider, which carry texts of many items at once."""
    totals = _totals(items)
    return {**totals, "embeddings_computed": totals["wanted"], **by_reason(items)}


def _totals(items: QuerySet[RunItem]) -> dict[str, Any]:
    return items.aggregate(
        found=Count("id"),
        fetched=Count("id", filter=Q(blob__isnull=False)),
        unchanged=Count("id", filter=Q(verdict=Verdict.UNCHANGED)),
        ingested=Count("id", filter=Q(verdict=Verdict.INGESTED)),
        removed=Count("id", filter=Q(verdict=Verdict.REMOVED)),
        open=Count("id", filter=Q(verdict="")),
        chunks=Sum("chunks", filter=Q(verdict=Verdict.INGESTED), default=0),
        wanted=Sum("embeddings_computed", default=0),
        embeddings_reused=Sum("embeddings_reused", default=0),
        parts=Sum("parts", default=0),
        bytes=Sum("size", default=0),
        http_requests=Sum("requests", default=0),
    )


def waiting_parts(run: IngestionRun) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM ingestion_runitem item JOIN kb_blob blob ON blob.id = item.blob_id JOIN ingestion_recognizedpart part"
            " ON part.organization_id = item.organization_id AND part.content_hash = blob.sha256 AND part.recipe = item.recipe"
            " AND part.position < item.parts"
            " WHERE item.run_id = %s AND item.stage = 'parted' AND part.text IS NULL AND part.error = ''",
            [run.id],
        )
        return cursor.fetchone()[0]


def cost_of(run: IngestionRun, tokens: int, embeddings: int) -> Decimal | None:
    """By the price of the model, else by what the source's settings say a thousand segments cost; None where neither says anything."""
    price = run.space.embedding_model.price_per_million_tokens if run.space_id else None
    if price is not None:
        return price * Decimal(tokens) / 1_000_000
    entries = run.version.document.get("sources", []) if run.version_id else []
    own = next((entry for entry in entries if UUID(entry["id"]) == run.source_id), {})
    price = (own.get("settings") or {}).get("cost_per_thousand_segments")
    return Decimal(str(price)) * embeddings / 1000 if price is not None else None


def shown_cost(run: IngestionRun, tokens: int, embeddings: int) -> str | None:
    cost = cost_of(run, tokens, embeddings)
    return None if cost is None else str(cost)


def by_reason(items) -> dict[str, dict[str, int]]:
    grouped: dict[str, dict[str, int]] = {"skipped": {}, "failed": {}}
    rows = items.filter(verdict__in=(Verdict.SKIPPED, Verdict.FAILED)).values("verdict", "reason").annotate(number=Count("id"))
    for row in rows.order_by("verdict", "reason"):
        grouped[row["verdict"]][row["reason"] or "error"] = row["number"]
    return grouped
