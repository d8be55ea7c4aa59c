"""What is cleared away: nothing of a deleted knowledge base or organization is left, in tables or in the storage."""

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection

from ingestion import housekeeping
from ingestion.models import IngestionRun
from ingestion.services.files import store_files
from ingestion.services.pushes import ingest_text
from ingestion.services.runs import start_run
from kb import services
from kb.models import Blob, Chunk, Document, File, KnowledgeBase, Organization, Source

pytestmark = pytest.mark.django_db


@pytest.fixture
def filled(knowledge_base, source, alice):
    """A knowledge base with a published file, and a text that nobody worked yet."""
    from uuid import uuid4

    from ingestion.stages import slices

    store_files(source, [SimpleUploadedFile("a.md", b"# Leave\n\nThirty days of leave a year.\n")], user=alice)
    run = start_run(source, user=alice)
    for stage in ("crawl", "extract", "embed", "publish", "finish"):
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    ingest_text(knowledge_base, text="Travel is paid after the trip.", document_name="travel")
    assert Chunk.objects.filter(knowledge_base=knowledge_base).exists()
    return knowledge_base


def held(knowledge_base_id) -> list[int]:
    """Rows of the tables without foreign keys."""
    counts = []
    with connection.cursor() as cursor:
        for table in ("embedding_256", "embedding_use", "lexical", "lexical_term", "lexical_total", "lexical_delta"):
            cursor.execute(f"SELECT count(*) FROM {table} WHERE kb = %s", [knowledge_base_id])
            counts.append(cursor.fetchone()[0])
    return counts


def test_a_deleted_knowledge_base_goes_whole(filled):
    identifier = filled.id
    assert any(held(identifier))
    services.delete_knowledge_base(filled)
    housekeeping.clear_deleted()
    assert not KnowledgeBase.objects.filter(id=identifier).exists()
    for model in (Source, Document, Chunk, IngestionRun):
        assert not model.objects.filter(knowledge_base_id=identifier).exists()
    assert not File.objects.exists()
    assert held(identifier) == [0] * 6


def test_a_deleted_organization_leaves_no_file_in_the_storage(filled, organization):
    keys = list(Blob.objects.filter(organization=organization).values_list("storage_key", flat=True))
    assert len(keys) >= 2
    assert all(default_storage.exists(key) for key in keys)
    services.delete_organization(organization)
    housekeeping.clear_deleted()
    assert not Organization.objects.filter(id=organization.id).exists()
    assert not any(default_storage.exists(key) for key in keys)


@pytest.mark.django_db(databases=["default", "owner"])
def test_an_organization_with_models_of_its_own_goes_too(organization, carol):
    from kb.access import actor_for_user
    from kb.embedding_models import register_model
    from kb.models import EmbeddingModel

    own = {"name": "own", "provider": "hashing", "model": "own", "dimension": 256, "max_input_tokens": 256}
    register_model(actor_for_user(carol), document=own)
    services.delete_organization(organization)
    housekeeping.clear_deleted()
    assert not Organization.objects.filter(id=organization.id).exists()
    assert not EmbeddingModel.objects.filter(name="own").exists()


def test_of_a_removed_source_the_others_keep_what_they_have(filled, actor):
    from kb import versioning

    document = dict(versioning.read(filled).document)
    gone = Source.objects.get(knowledge_base=filled, name="files")
    versioning.publish(filled, document=document | {"sources": []}, expected=1, actor=actor)
    housekeeping.clear_removed_sources()
    assert not Source.objects.filter(id=gone.id).exists()
    assert Document.objects.filter(knowledge_base=filled).count() == 1  # the pushed text
    assert not Chunk.objects.filter(knowledge_base=filled).exists()
