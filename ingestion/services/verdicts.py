"""The items of a run, narrowed."""

from django.db.models import Q, QuerySet

from ingestion.models import IngestionRun, RunItem


def find_items(run: IngestionRun, *, verdict: str = "", reason: str = "", query: str = "") -> QuerySet[RunItem]:
    """Items of a run by verdict, by reason code, and by words of the title or key; without what only the work needs."""
    found = RunItem.objects.filter(run=run).defer("passages", "text_hashes", "extracted", "fingerprints")
    if verdict:
        found = found.filter(verdict=verdict)
    if reason:
        found = found.filter(reason=reason)
    if query:
        found = found.filter(Q(title__icontains=query) | Q(key__icontains=query))
    return found
