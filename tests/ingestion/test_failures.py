"""An error of ours, or a service that was away, is no death of a worker: leases go back, and what stops our code each time ends."""

from pathlib import Path
from uuid import uuid4

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from django.utils import timezone

from config.errors import Unavailable
from ingestion import claims, outages
from ingestion.models import EmbeddedText, IngestionRun, RunItem
from ingestion.paying import Payer
from ingestion.services.files import store_files
from ingestion.services.runs import start_run
from ingestion.stages import embed, items, slices, texts
from kb.models import Document
from kb.providers.base import Embedded, Role
from kb.providers.hashing import HashingProvider

pytestmark = pytest.mark.django_db
real_transactions = pytest.mark.django_db(transaction=True, databases=["default", "owner"])


def work(stage: str, run: IngestionRun) -> None:
    slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")


@pytest.fixture
def run(source, alice) -> IngestionRun:
    """A run whose two documents are ready to be published."""
    store_files(source, [SimpleUploadedFile(name, f"# {name}\n\nThirty days.\n".encode()) for name in ("a.md", "b.md")], user=alice)
    run = start_run(source, user=alice)
    for stage in ("crawl", "extract", "embed"):
        work(stage, run)
    return run


def lose_the_database(run: IngestionRun, part: slices.Slice) -> None:
    """A stage whose connection is ended by the server, as a restart does."""
    items.take(run, RunItem.Stage.EMBEDDED, token=part.lease, limit=32, related=())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def miss_the_storage(run: IngestionRun, part: slices.Slice) -> None:
    items.take(run, RunItem.Stage.EMBEDDED, token=part.lease, limit=32, related=())
    raise Unavailable("The storage does not answer.")


def test_what_stops_our_code_each_time_ends_with_the_error_and_without_its_neighbour(run):
    RunItem.objects.filter(run=run, key="a.md").update(passages=[["not", "a", "span"]])
    for _ in range(items.MAX_FAILURES):
        with pytest.raises(ValueError, match="unpack"):
            work("publish", run)
        RunItem.objects.update(not_before=None)
    bad, good = RunItem.objects.get(run=run, key="a.md"), RunItem.objects.get(run=run, key="b.md")
    assert (bad.verdict, bad.reason) == ("failed", "internal")
    assert "ValueError: not enough values to unpack" in bad.error
    assert "ValueError" in Document.objects.get(key="a.md").last_error
    assert Document.objects.get(key="a.md").quarantined_hash is None
    if not good.verdict:
        work("publish", run)
        good.refresh_from_db()
    assert (good.verdict, good.failures) == ("ingested", 0)
    work("finish", run)
    assert IngestionRun.objects.get(id=run.id).status == "partial"


def test_between_its_tries_it_waits_longer_each_time(run):
    RunItem.objects.filter(run=run).update(passages=[["not", "a", "span"]])
    waits = []
    for _ in range(3):
        with pytest.raises(ValueError, match="unpack"):
            work("publish", run)
        item = RunItem.objects.get(run=run, key="a.md")
        assert (item.attempts, item.lease_token) == (0, None)
        waits.append((item.not_before - timezone.now()).total_seconds())
        RunItem.objects.filter(id=item.id).update(not_before=None)
    assert waits == [pytest.approx(seconds, abs=1.5) for seconds in (2, 4, 8)]


@real_transactions
@pytest.mark.parametrize("stage", [lose_the_database, miss_the_storage])
def test_a_service_that_was_away_counts_neither_as_a_death_nor_as_a_failure(run, settings, stage):
    honest = settings.STAGES
    for _ in range(items.MAX_ATTEMPTS + items.MAX_FAILURES):
        settings.STAGES = {**honest, "publish": f"{__name__}:{stage.__name__}"}
        with pytest.raises((OperationalError, Unavailable)):
            work("publish", run)
        states = list(RunItem.objects.filter(run=run).values_list("attempts", "failures", "lease_token", "verdict"))
        assert states == [(0, 0, None, "")] * 2
        RunItem.objects.update(not_before=None)
    settings.STAGES = honest
    work("publish", run)
    assert set(RunItem.objects.values_list("verdict", flat=True)) == {"ingested"}


@real_transactions
def test_who_lists_frees_the_run_for_another_try_soon(source, settings):
    run = start_run(source)
    settings.SOURCE_LISTERS = {"upload": f"{__name__}:list_without_a_database"}
    with pytest.raises(OperationalError):
        work("crawl", run)
    run = IngestionRun.objects.get(id=run.id)
    assert run.is_open
    assert (run.lease_until - timezone.now()).total_seconds() == pytest.approx(items.RUN_RETRY_SECONDS, abs=2)


def list_without_a_database(*_, **__):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@real_transactions
def test_what_must_be_written_waits_for_the_database(hashing_model):
    tries = []

    def write() -> int:
        tries.append(1)
        with connection.cursor() as cursor:
            if len(tries) == 1:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            cursor.execute("SELECT 7")
            return cursor.fetchone()[0]

    assert outages.insist(write) == 7
    assert len(tries) == 2


def test_an_error_of_the_statement_is_not_insisted_on(hashing_model):
    with pytest.raises(OperationalError, match="requested length too large"), connection.cursor() as cursor:
        outages.insist(lambda: cursor.execute("SELECT repeat('x', 1100000000)"))


class Stumbling(HashingProvider):
    """Raises on one text, as a bug of a model's library does."""

    def embed_batch(self, texts, role: Role) -> Embedded:
        if any("stumble" in text for text in texts):
            raise KeyError("no such token")
        return super().embed_batch(texts, role)


def test_a_text_that_stops_the_model_fails_in_words_and_its_neighbours_are_embedded(knowledge_base, source):
    run = claims.claim(source, version=knowledge_base.current, space=knowledge_base.space, listed_at=timezone.now())
    scope = {"organization_id": run.organization_id, "space": run.space}
    hashes = [uuid4().bytes * 2 for _ in range(3)]
    for digest, text in zip(hashes, ("one", "stumble", "three"), strict=True):
        EmbeddedText.objects.create(**scope, text_hash=digest, text=text, tokens=1)
    RunItem.objects.create(
        organization_id=run.organization_id, run=run, key="a.md", key_hash=uuid4().bytes, stage=RunItem.Stage.EXTRACTED, text_hashes=hashes
    )
    spec, _ = embed.provider_of(run.space.embedding_model, organization_id=run.organization_id)
    for _ in range(texts.MAX_FAILURES):
        embed._embed_all(run, slices.Slice("embed", f"{run.id}:1", run), Payer(run, spec, Stumbling(spec)))
        EmbeddedText.objects.update(not_before=None)
    assert EmbeddedText.objects.filter(vector=None).count() == 1
    assert EmbeddedText.objects.get(vector=None).attempts == 0
    embed.settle(run, 0)
    item = RunItem.objects.get(run=run)
    assert (item.verdict, item.reason) == ("failed", "embedding_failed")
    assert "Embedding stopped with KeyError" in item.error


def test_stored_bytes_that_are_damaged_fail_their_document_and_retire_nothing(source, alice):
    store_files(source, [SimpleUploadedFile(name, b"# Leave\n\nThirty days.\n") for name in ("a.md", "b.md")], user=alice)
    run = start_run(source, user=alice)
    for stage in ("crawl", "extract", "embed", "publish", "finish"):
        work(stage, run)
    store_files(source, [SimpleUploadedFile(n, f"# Leave\n\nForty {n}.\n".encode()) for n in ("a.md", "b.md")], user=alice)
    damaged, missing = Document.objects.order_by("key").select_related("file__blob")
    Path(default_storage.path(damaged.file.blob.storage_key)).write_bytes(b"something else")
    default_storage.delete(missing.file.blob.storage_key)
    again = start_run(source, user=alice)
    for stage in ("crawl", "extract", "embed", "publish", "finish"):
        work(stage, again)
    assert set(RunItem.objects.filter(run=again).values_list("verdict", "reason")) == {("failed", "stored_damaged")}
    assert [document.chunks.get().text for document in Document.objects.all()] == ["# Leave\n\nThirty days."] * 2
    assert {document.last_error.split(".")[0] for document in Document.objects.all()} == {
        "A stored file is damaged: its content does not match its hash",
        "A stored file is missing from the storage",
    }
