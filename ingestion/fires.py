"""Firing schedules: claim, enqueue, return. A fire is one transaction, so it can be neither lost half-way nor made twice."""

import logging
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from config.errors import LecternError
from ingestion import claims
from ingestion.models import IngestionRun, ScheduleFire, SourceSchedule
from ingestion.services.runs import start_run
from kb.models import Source
from kb.schemas.cron import parse_cron

log = logging.getLogger(__name__)

Outcome = ScheduleFire.Outcome
AT_ONCE = 200


def fire_due() -> None:
    """Fire what is due and was not fired: at its minute, or later when beat, the broker or the workers were away."""
    due = SourceSchedule.objects.filter(due_at__lte=timezone.now(), source__state=Source.State.ACTIVE).order_by("due_at")
    for source_id in list(due.values_list("source_id", flat=True)[:AT_ONCE]):
        try:
            fire(source_id)
        except Exception:
            log.exception("The schedule of source %s could not be fired and is tried again by the next sweep.", source_id)


def fire(source_id: UUID) -> ScheduleFire | None:
    """Start the run of a source that is due and log it; None if it is not due (any more). Times missed meanwhile are one fire.

    The log entry, the run and the next due time are committed together: a process that dies before has done nothing, and the sweep comes
    back to it; one that dies after has left an open run, which the sweep works.
    """
    with transaction.atomic():
        source = claims.hold_source(source_id)  # before its schedule, in the order in which a publication takes them
        if source is None:
            return None
        now = timezone.now()
        row = SourceSchedule.objects.select_for_update(no_key=True).filter(source=source, due_at__lte=now).first()
        if row is None:
            return None
        schedule = parse_cron(row.cron)
        row.due_at = schedule.next_fire(now)
        row.save(update_fields=["due_at"])
        due_at = schedule.last_fire(now)
        if ScheduleFire.objects.filter(source=source, due_at=due_at).exists():
            return None  # a clock that was set back
        outcome, run, error = _start(source)
        return ScheduleFire.objects.create(
            organization_id=source.organization_id, source=source, due_at=due_at, outcome=outcome, run=run, error=error
        )


def _start(source: Source) -> tuple[Outcome, IngestionRun | None, str]:
    """What the fire came to. What may pass by itself is raised: nothing is logged, and the source stays due."""
    if not source.enabled:
        return Outcome.SKIPPED, None, f"The source '{source.name}' is disabled."
    try:
        with transaction.atomic():
            return Outcome.STARTED, start_run(source, trigger=IngestionRun.Trigger.SCHEDULE), ""
    except claims.Busy as busy:
        return Outcome.ALREADY_RUNNING, IngestionRun.objects.filter(id=busy.extra["run_id"]).first(), busy.message
    except LecternError as error:
        if error.transient:
            raise
        log.warning("The schedule of source %s could not start a run: %s", source.id, error.message)
        return Outcome.FAILED, None, error.message
