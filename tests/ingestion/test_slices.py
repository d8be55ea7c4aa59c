"""A slice of work: what it does with runs that are gone, and with errors of its own."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from ingestion import claims, wakes
from ingestion.models import IngestionRun, RunItem
from ingestion.stages import items, slices

pytestmark = pytest.mark.django_db


def claim(source) -> IngestionRun:
    return claims.claim(source, version=source.knowledge_base.current, space=source.knowledge_base.space)


def test_a_message_for_a_run_that_is_gone_or_closed_does_nothing(source):
    slices.work("crawl", uuid4(), "x:1")
    run = claim(source)
    claims.cancel(run)
    slices.work("crawl", run.id, f"{run.id}:1")
    run.refresh_from_db()
    assert run.listed_at is None


def test_an_unexpected_error_stands_on_the_run(source, settings):
    settings.CRAWLS = {"upload": "nowhere.at_all:work"}
    run = claim(source)
    with pytest.raises(ImportError), transaction.atomic():
        slices.work("crawl", run.id, f"{run.id}:1")
    with pytest.raises(ImportError):
        slices.work("crawl", run.id, f"{run.id}:1")
    run.refresh_from_db()
    assert run.is_open
    assert "The stage crawl stopped with ImportError" in run.error


def test_a_slice_signs_off_and_wakes_what_follows(source):
    run = claim(source)
    token = f"{run.id}:1"
    wakes.hold("crawl", token)
    slices.work("crawl", run.id, token)
    assert wakes.under_way("crawl", run.id) == 0
    assert wakes.under_way("finish", run.id) == 1  # an empty source: there is only the end left


def test_a_run_over_an_empty_source_succeeds(source):
    run = claim(source)
    slices.work("crawl", run.id, f"{run.id}:1")
    slices.work("finish", run.id, f"{run.id}:2")
    run.refresh_from_db()
    assert (run.status, run.stop_reason, run.counters["found"]) == ("succeeded", "completed", 0)


def idle_crawl(run: IngestionRun, part: slices.Slice) -> bool:
    """Has nothing to do, and says so."""
    return False


def late_crawl(run: IngestionRun, part: slices.Slice) -> bool:
    """Somebody has something for it after its last look; a second message is not sent while it is under way."""
    assert wakes.wake(run.id, "crawl") == 0
    return False


@pytest.mark.parametrize(("crawl", "woken"), [("idle_crawl", 0), ("late_crawl", 1)])
def test_what_comes_between_the_last_look_of_a_crawl_and_its_end_wakes_it_again(source, settings, crawl, woken):
    settings.CRAWLS = {"upload": f"{__name__}:{crawl}"}
    run = claim(source)
    token = f"{run.id}:1"
    wakes.hold("crawl", token)
    slices.work("crawl", run.id, token)
    assert wakes.under_way("crawl", run.id) == woken


def test_items_that_wait_are_counted_by_stage_and_only_so_far_as_it_matters(source, monkeypatch):
    run = claim(source)
    later, now = timezone.now() + timedelta(hours=1), timezone.now()

    def item(key: str, stage: str, **values: object) -> RunItem:
        return RunItem(organization_id=run.organization_id, run=run, key=key, key_hash=key.encode(), stage=stage, **values)

    RunItem.objects.bulk_create(
        [
            *[item(f"f{number}", "fetched") for number in range(7)],
            item("leased", "fetched", lease_until=later),
            item("left", "fetched", lease_until=now - timedelta(seconds=1)),
            item("held", "extracted", not_before=later),
            item("scan", "parted", parts=40),
            item("book", "parted", parts=2),
            item("done", "done", verdict="ingested"),
        ]
    )
    assert items.open_stages(run.id) == {"fetched": 8, "parted": 42}
    monkeypatch.setattr(items, "COUNTED", 5)
    assert items.open_stages(run.id) == {"fetched": 5, "parted": 42}
    assert items.open_stages(uuid4()) == {}
