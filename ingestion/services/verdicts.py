"""The items of a run, narrowed."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from ingestion.models import IngestionRun, RunItem
from kb import access
from kb.access import Actor
from kb.models import Document, Source


def find_items(actor: Actor, run: IngestionRun, *, verdict: str = "", reason: str = "", query: str = "") -> QuerySet[RunItem]:
    """Items of a run by verdict, by reason code, and by words of the title, key or address; without what only the work needs, and in
    a channel without those of documents that the actor cannot see."""
    found = RunItem.objects.filter(run=run).defer("passages", "text_hashes", "extracted", "fingerprints")
    if run.source.kind == Source.Kind.CHANNEL:
        found = found.filter(document__in=access.rows(actor, Document))
    if verdict:
        found = found.filter(verdict=verdict)
    if reason:
        found = found.filter(reason=reason)
    if query:
        found = found.filter(Q(title__icontains=query) | Q(key__icontains=query) | Q(url__icontains=query))
    return found


def pages_that_led_to(items: Iterable[RunItem]) -> dict[int, str]:
    """Addresses by `RunItem.found_on`, looked up together."""
    wanted = {item.found_on for item in items if item.found_on is not None}
    return dict(RunItem.objects.filter(id__in=wanted).values_list("id", "url")) if wanted else {}
