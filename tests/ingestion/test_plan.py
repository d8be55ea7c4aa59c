"""Settings of a run, resolved once for as long as they hold."""

import pytest

from ingestion.models import IngestionRun
from ingestion.plan import plan_for
from kb.models import EmbeddingModel, KnowledgeBase, Source

pytestmark = pytest.mark.django_db


def planned(source: Source):
    """As another run would find it."""
    knowledge_base = KnowledgeBase.objects.select_related("current", "space__embedding_model").get(id=source.knowledge_base_id)
    return plan_for(
        IngestionRun(
            organization_id=source.organization_id,
            knowledge_base=knowledge_base,
            source=source,
            version=knowledge_base.current,
            space=knowledge_base.space,
        )
    )


def test_a_plan_is_made_once(source):
    assert planned(source) is planned(source)


def test_a_model_that_reads_less_than_before_is_cut_for_at_once(source):
    """`max_input_tokens` may change under a space; a worker must not go on cutting for the old window."""
    before = planned(source)
    EmbeddingModel.objects.filter(name="hashing").update(max_input_tokens=128)
    after = planned(source)
    assert after.chunk["settings"]["target_tokens"] < before.chunk["settings"]["target_tokens"]
    assert after.fingerprints["chunk"] != before.fingerprints["chunk"]


def test_a_run_whose_model_lost_its_secret_ends_with_a_sentence(source, alice):
    """Listing and cutting need no secret; where one is needed, the items fail with what to do, and the run does not stand still."""
    from uuid import uuid4

    from django.core.files.uploadedfile import SimpleUploadedFile

    from ingestion.services.files import store_files
    from ingestion.services.runs import start_run
    from ingestion.stages import slices

    store_files(source, [SimpleUploadedFile("a.md", b"# Leave\n\nThirty days of leave a year.\n")], user=alice)
    EmbeddingModel.objects.filter(name="hashing").update(credential="GONE")
    run = start_run(source, user=alice)
    for stage in ("crawl", "extract", "embed", "finish"):
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    run.refresh_from_db()
    assert run.status == "failed"
    assert "There is no secret named 'GONE'" in run.error
