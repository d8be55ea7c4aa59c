"""What the items of a run say about documents."""

from collections.abc import Mapping
from typing import Any

from ingestion.models import IngestionRun, RunItem
from ingestion.reconcile import Finding
from kb.models.base import key_hash


def finding(verdict: str, reason: str, response: Mapping[str, Any] | None) -> Finding:
    """What an item says about its document."""
    target = (response or {}).get("target")
    return Finding(verdict, reason, target=key_hash(target) if target else None, permanent=bool((response or {}).get("permanent")))


def findings_of(run: IngestionRun) -> dict[bytes, Finding]:
    """By the hash of each key."""
    rows = RunItem.objects.filter(run=run).values_list("key_hash", "verdict", "reason", "response")
    return {bytes(digest): finding(verdict, reason, response) for digest, verdict, reason, response in rows.iterator()}
