"""Publication when what was paid is not there any more, and runs that can never go on."""

from uuid import uuid4

import pytest

from ingestion.models import EmbeddedText, IngestionRun, RunItem
from ingestion.services.pushes import ingest_text
from ingestion.stages import slices
from kb.models import Chunk

pytestmark = pytest.mark.django_db


def go(run: IngestionRun, *stages: str) -> IngestionRun:
    for stage in stages:
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


@pytest.mark.parametrize("lost", ["row", "vector"])
def test_vectors_that_were_forgotten_meanwhile_are_wanted_again(knowledge_base, lost):
    """A purge with `reembed` of another source may take them between the embed stage and this one."""
    run = ingest_text(knowledge_base, text="Thirty days of leave a year.", document_name="leave")
    go(run, "extract", "embed")
    if lost == "row":
        EmbeddedText.objects.all().delete()
    else:
        EmbeddedText.objects.update(vector=None, text="Leave\n\nThirty days of leave a year.")
    go(run, "publish")
    assert RunItem.objects.get(run=run).stage == RunItem.Stage.FETCHED
    assert go(run, "extract", "embed", "publish", "finish").status == "succeeded"
    assert Chunk.objects.filter(knowledge_base=knowledge_base).count() == 1


def test_a_run_that_can_never_go_on_ends_with_the_reason(source, settings):
    from ingestion.services.runs import start_run

    run = start_run(source)
    settings.SOURCE_LISTERS = {}
    run = go(run, "crawl")
    assert run.status == "failed"
    assert "There is no source named 'upload'" in run.error


@pytest.mark.parametrize("why", ["the provider pauses", "the texts are put off", "another worker has them"])
def test_a_slice_that_could_take_nothing_does_not_wake_itself_again(knowledge_base, why):
    """Else it would do so dozens of times a second, for as long as a provider pauses."""
    from datetime import timedelta

    from django.utils import timezone

    from config.redis import redis_client
    from ingestion import limiter, sweeping, wakes
    from kb.embedding import spec_of

    run = go(ingest_text(knowledge_base, text="Thirty days of leave a year.", document_name="leave"), "extract")
    redis_client().flushdb()
    later = timezone.now() + timedelta(seconds=60)
    if why == "the provider pauses":
        limiter.pause(spec_of(knowledge_base.space.embedding_model, organization_id=run.organization_id), 60)
    else:
        EmbeddedText.objects.update(**({"not_before": later} if "put off" in why else {"lease_until": later, "lease_token": uuid4()}))
    go(run, "embed")
    assert wakes.under_way("embed", run.id) == 0
    sweeping.sweep()  # comes back to it every few seconds
    assert wakes.under_way("embed", run.id) == 1
