"""Which texts a death of the embed worker is held against: those that were in flight, and no others of the pool."""

from uuid import uuid4

import pytest
from django.utils import timezone

from config.errors import InvalidInput
from ingestion import claims, paying
from ingestion.models import EmbeddedText, RunItem
from ingestion.stages import embed, slices, texts
from kb.providers.batches import BatchLimits

LIMITS = BatchLimits(max_texts=4, max_tokens=10_000)
pytestmark = pytest.mark.django_db


@pytest.fixture
def run(knowledge_base, source):
    """A run with one document whose ten texts wait for their vectors."""
    run = claims.claim(source, version=knowledge_base.current, space=knowledge_base.space, listed_at=timezone.now())
    hashes = [uuid4().bytes * 2 for _ in range(10)]
    scope = {"organization_id": run.organization_id, "space": run.space}
    EmbeddedText.objects.bulk_create(EmbeddedText(**scope, text_hash=digest, text="words", tokens=5) for digest in hashes)
    RunItem.objects.create(
        organization_id=run.organization_id, run=run, key="a.md", key_hash=uuid4().bytes, stage=RunItem.Stage.EXTRACTED, text_hashes=hashes
    )
    return run


def take(run) -> list[list[texts.Wanted]]:
    """The batches of a worker that came after one that died: leases have run out."""
    EmbeddedText.objects.update(lease_until=None, lease_token=None)
    return embed.batches_of(embed._take(run, uuid4(), 0), LIMITS)


def test_a_lease_alone_is_no_attempt(run):
    for _ in range(embed.MAX_ATTEMPTS + 2):
        assert sum(map(len, take(run))) == 10
    assert not EmbeddedText.objects.exclude(error="").exists()


def test_what_was_in_flight_comes_last_and_alone(run):
    first = take(run)[0]
    texts.announce(run, first)
    batches = take(run)
    assert [len(batch) for batch in batches] == [4, 2, 1, 1, 1, 1]
    assert {wanted.id for wanted in first} == {batch[0].id for batch in batches[2:]}


def test_a_text_that_is_deadly_fails_without_its_neighbours(run):
    deadly = take(run)[0][0].id
    for _ in range(embed.MAX_ATTEMPTS):
        texts.announce(run, next(batch for batch in take(run) if any(wanted.id == deadly for wanted in batch)))
    assert deadly not in {wanted.id for batch in take(run) for wanted in batch}
    failed = EmbeddedText.objects.exclude(error="")
    assert [text.id for text in failed] == [deadly]


def test_an_answer_takes_the_attempt_back(run):
    batch = take(run)[0]
    texts.announce(run, batch)
    texts.uncount(batch)
    assert not EmbeddedText.objects.exclude(attempts=0).exists()


def test_an_address_that_is_refused_fails_the_documents_and_kills_no_text(run, monkeypatch):
    def refuse(*_):
        raise InvalidInput("kb.test is or resolves to a private or reserved address, which is refused.")

    monkeypatch.setattr(paying, "embed_once", refuse)
    slices.work("embed", run.id, f"{run.id}:1")
    item = RunItem.objects.get(run=run)
    assert (item.verdict, item.reason) == ("failed", "embedding_failed")
    assert "private or reserved" in item.error
    assert not EmbeddedText.objects.exclude(attempts=0, error="").exists()
