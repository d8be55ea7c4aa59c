"""Sources as they stand: what they hold, when they are due next, and what came of their last times."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from ingestion.models import ScheduleFire, SourceSchedule
from kb.models import Document, Source


@dataclass(frozen=True, slots=True)
class SourceState:
    """`schedule` is None for a source without a `cron` and for a disabled one."""

    source: Source
    documents: int
    schedule: SourceSchedule | None
    last_fire: ScheduleFire | None


def states_of(sources: Sequence[Source], *, seen: QuerySet[Document] | None = None) -> list[SourceState]:
    """The state of each, in their order; of documents only the `seen` ones are counted, if given."""
    alive = (Document.objects.all() if seen is None else seen).filter(source__in=sources, tombstoned_at=None)
    documents = dict(alive.values("source_id").annotate(number=Count("id")).values_list("source_id", "number"))
    schedules = SourceSchedule.objects.in_bulk([source.id for source in sources])
    latest = ScheduleFire.objects.filter(source__in=sources).order_by("source_id", "-created_at", "-id").distinct("source_id")
    fires = {fire.source_id: fire for fire in latest}
    return [SourceState(source, documents.get(source.id, 0), schedules.get(source.id), fires.get(source.id)) for source in sources]


def fires_of(source: Source) -> QuerySet[ScheduleFire]:
    """The log of a source's schedule."""
    return ScheduleFire.objects.filter(source=source)
