"""Why nothing happens, as a table."""

import pytest

from ingestion.services.progress import Situation, waiting_for

ALL = {"crawl": 1, "extract": 2, "embed": 1, "default": 2}


@pytest.mark.parametrize(
    ("seen", "slots", "words"),
    [
        (Situation({"crawl": 1}), ALL, "a free worker on queue crawl"),
        (Situation({"crawl": 1}, ahead=1), ALL, "1 earlier run on queue crawl"),
        (Situation({"crawl": 1}, ahead=3), ALL, "3 earlier runs on queue crawl"),
        (Situation({"crawl": 1}), {}, "no worker on queue crawl"),
        (Situation({"crawl": 1}, ahead=3), {}, "no worker on queue crawl"),
        (Situation({"extract": 5, "embed": 2}), {"default": 1}, "no worker on queue extract and no worker on queue embed"),
        (Situation({"publish": 1, "finish": 1}), {"embed": 1}, "no worker on queue default"),
        # A stage that is served goes on, whatever another one lacks.
        (Situation({"extract": 5, "embed": 2}), {"extract": 1}, "a free worker on queue extract"),
        (Situation({"embed": 2}, paused=True), ALL, "provider pause"),
        (Situation({"embed": 2}, paused=True), {}, "no worker on queue embed"),
        (Situation({"extract": 1, "embed": 2}, paused=True), ALL, "a free worker on queue extract"),
        (Situation({"extract": 1}, retry_at="12:00:00"), ALL, "another attempt at 12:00:00 UTC"),
        (Situation({"embed": 2}, working=True), {}, ""),
        (Situation({}), ALL, ""),
    ],
)
def test_what_a_run_waits_for(seen, slots, words):
    assert waiting_for(seen, slots) == words


def test_a_pausing_provider_is_seen(source, hashing_model, knowledge_base):
    from uuid import uuid4

    from django.utils import timezone

    from ingestion import limiter
    from ingestion.models import IngestionRun, RunItem, WorkerHeartbeat
    from ingestion.services.progress import progress_of
    from ingestion.services.runs import start_run
    from kb.embedding import spec_of

    now = timezone.now()
    run = start_run(source)
    IngestionRun.objects.filter(id=run.id).update(listed_at=now, started_at=now)
    RunItem.objects.create(organization=source.organization, run=run, key="a", key_hash=uuid4().bytes, stage="extracted")
    WorkerHeartbeat.objects.create(name="w", queues=["embed"], pid=1, started_at=now, seen_at=now)
    run = IngestionRun.objects.select_related("space__embedding_model").get(id=run.id)
    assert progress_of(run).waiting_for == "a free worker on queue embed"
    limiter.pause(spec_of(hashing_model, organization_id=source.organization_id), 30)
    assert progress_of(run).waiting_for == "provider pause"
    RunItem.objects.filter(run=run).update(lease_until=now + timezone.timedelta(seconds=60))
    assert progress_of(run).waiting_for == ""


def test_the_line_has_positions(actor, knowledge_base, source):
    from ingestion.services.progress import progress_of
    from ingestion.services.runs import start_run
    from kb import versioning
    from kb.models import Source

    document = dict(versioning.read(knowledge_base).document)
    document["sources"] = [*document["sources"], {"name": "second", "type": "upload"}]
    versioning.publish(knowledge_base, document=document, expected=1, actor=actor)
    first = start_run(source)
    second = start_run(Source.objects.get(knowledge_base=knowledge_base, name="second"))
    assert (progress_of(first).position, progress_of(second).position) == (1, 2)
