"""The items of a run, narrowed."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from ingestion.models import IngestionRun, RunItem
from kb import access
from kb.access import Actor
from kb.models import Document, Source


def items_of(run: IngestionRun, *, actor: Actor | None) -> QuerySet[RunItem]:
    """Of a run of a channel those of documents that the actor may see; all of them for nobody in particular."""
    found = RunItem.objects.filter(run=run)
    hides = actor is not None and run.source.kind == Source.Kind.CHANNEL
    return found.filter(document__in=access.rows(actor, Document)) if hides else found


def error_of(run: IngestionRun, *, actor: Actor) -> str:
    """What is said of the run; where that is what its first failed document says, the first that the actor may see."""
    if run.source.kind != Source.Kind.CHANNEL or run.status != IngestionRun.Status.FAILED or run.stop_reason:
        return run.error
    failed = items_of(run, actor=actor).filter(verdict=RunItem.Verdict.FAILED)
    return failed.order_by("id").values_list("error", flat=True).first() or ""


def find_items(actor: Actor, run: IngestionRun, *, verdict: str = "", reason: str = "", query: str = "") -> QuerySet[RunItem]:
    """Items of a run that the actor may see, by verdict, by reason code, and by words of the title, key or address; without what only the
    work needs."""
    found = items_of(run, actor=actor).defer("passages", "text_hashes", "extracted", "fingerprints")
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
