"""`/healthz` tells that the process answers, `/readyz` what of the rest does not, and what to do about it."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from config.queues import QUEUES
from ingestion import fleet
from ingestion.models import QueueBeat, WorkerHeartbeat

pytestmark = pytest.mark.django_db


@pytest.fixture
def workers(db):
    now = timezone.now()
    WorkerHeartbeat.objects.create(name="all@here", queues=list(QUEUES), pid=1, started_at=now, seen_at=now)


def readyz() -> tuple[int, dict[str, str]]:
    answer = Client().get("/readyz")
    return answer.status_code, answer.json()


def test_the_process_answers_without_anything_else(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_queue_without_a_worker_is_named_with_the_command(workers):
    assert readyz()[0] == 200
    WorkerHeartbeat.objects.update(queues=["crawl", "default", "extract"])
    status, parts = readyz()
    assert status == 503
    assert "python -m config.roles worker --queues embed" in parts["queue:embed"]
    assert parts["queue:extract"] == "ok"


def test_a_worker_that_was_not_seen_for_long_does_not_count(workers):
    WorkerHeartbeat.objects.update(seen_at=timezone.now() - timedelta(minutes=1))
    assert readyz()[0] == 503


def test_a_message_that_does_not_come_out_is_told_and_one_that_does_is_proof(workers):
    long_ago = timezone.now() - timedelta(minutes=5)
    QueueBeat.objects.create(queue="embed", sent_at=long_ago)
    assert readyz()[0] == 200  # sent a moment ago
    QueueBeat.objects.update(first_sent_at=long_ago)
    status, parts = readyz()
    assert (status, parts["queue:embed"]) == (503, "Messages go in and do not come out. Look at the workers of this queue.")
    fleet.record_proof("embed")
    assert readyz()[0] == 200


def test_a_broker_out_of_reach_is_told(workers, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    status, parts = readyz()
    assert status == 503
    assert "REDIS_URL" in parts["broker"]
