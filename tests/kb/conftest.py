"""Accounts of `kb`'s tests."""

import pytest

from tests.kb.sessions import enter


@pytest.fixture
def admin_user(db):
    """An operator, without a password: hashing one costs more than a page, and sessions are forced."""
    from kb.models import User

    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def operator(admin_user):
    """A client with an operator's session."""
    return enter(admin_user)


@pytest.fixture
def filled(knowledge_base, organization, source, alice, bob, carol, hashing_model):
    """One row of every table."""
    from django.utils import timezone

    from kb import access, bindings, services, usage
    from kb.channels import ChannelInput, create_channel
    from kb.models import Blob, Chunk, Dataset, DatasetPart, Document, File, IdempotencyKey, SpaceChange, Upload
    from kb.reranking import register_reranker

    blob = Blob.objects.create(organization=organization, sha256=b"1" * 32, size=3, storage_key="k")
    file = File.objects.create(organization=organization, blob=blob, name="Plan Acme.md", size=3, sha256=b"1" * 32)
    of = {"organization": organization, "knowledge_base": knowledge_base}
    document = Document.objects.create(source=source, key="plan", key_hash=b"1" * 16, title="Plan of Acme", file=file, **of)
    dataset = Dataset.objects.create(source=source, key="plan", key_hash=b"1" * 16, name="plan_of_acme", **of)
    columns = [{"name": "day", "type": "DATE", "is_empty": False}]
    DatasetPart.objects.create(dataset=dataset, document=document, blob=blob, columns=columns, rows=3, size=3, start=0, end=9, **of)
    chunk = Chunk.objects.create(
        **of,
        document=document,
        ordinal=0,
        start=0,
        end=5,
        text="Acme <b>chunk</b>",
        text_hash=b"1" * 32,
        heading_path=["Plan"],
        tokens=3,
    )
    channel = create_channel(access.actor_for_user(alice), wanted=ChannelInput("Uploads of Acme", knowledge_base.id))
    bound = {"purpose": "vision", "endpoint": "https://vision.example/v1", "credential": "ACME_KEY"}
    bindings.bind_service(access.actor_for_user(carol), document=bound)
    Upload.objects.create(
        organization=organization, created_by=carol, target="source", file_name="Acme.md", size=1, expires_at=timezone.now()
    )
    services.set_grant(knowledge_base, user_id=bob.pk, level="viewer")
    services.create_api_key(organization, name="bot", created_by=carol)
    services.set_secret(organization=organization, name="ACME_KEY", value="a very secret value")
    reranker = {"name": "Acme's", "provider": "cohere", "model": "rerank-v3.5", "credential": "ACME_KEY"}
    register_reranker(access.actor_for_user(carol), document=reranker)
    usage.charge(
        organization_id=organization.id, knowledge_bases=[knowledge_base.id], model=hashing_model, purpose="documents", texts=1, tokens=1
    )
    models = {"from_model": "hashing", "to_model": "another"}
    SpaceChange.objects.create(**of, **models, version=knowledge_base.current, state="done", finished_at=timezone.now())
    IdempotencyKey.objects.create(organization=organization, key_digest=b"1" * 32, body_digest=b"1" * 32)
    return {"channel": channel, "document": document, "chunk": chunk, "file": file, "blob": blob}
