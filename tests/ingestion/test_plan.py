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
