"""A slice of work: what it does with runs that are gone, and with errors of its own."""

from uuid import uuid4

import pytest
from django.db import transaction

from ingestion import claims, wakes
from ingestion.models import IngestionRun
from ingestion.stages import slices

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
