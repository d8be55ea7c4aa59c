"""A new version that cannot be read. Refused on its content, it is what stands there now, and the old text is not: the old version
retires. Where the attempt said nothing of the content, the old version stays, and no run concludes from the failure that it is gone.

Each rule in an upload source and in a channel.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from config.errors import PermanentProviderError
from ingestion import plan
from ingestion.models import IngestionRun, RunItem
from ingestion.services import channel_files, file_status, files
from ingestion.services.runs import purge_source, start_run
from ingestion.stages import extract, items, slices
from kb import blobs
from kb.access import actor_for_user
from kb.channels import ChannelInput, create_channel
from kb.models import Chunk, Document
from kb.providers.hashing import HashingProvider
from tests.samples.hostile_pdfs import bomb_pdf
from tests.samples.pdfs import text_pdf

pytestmark = pytest.mark.django_db
OLD = b"# Leave\n\nThe old rule gives thirty days of leave a year.\n"
NEW = b"# Leave\n\nThe new rule gives forty days of leave a year.\n"
SLOW = text_pdf([f"Page {number} says much of nothing. " * 40 for number in range(120)])
STAGES = ("crawl", "extract", "embed", "publish", "finish")


@dataclass
class Shelf:
    """One document that is replaced: `put` brings its next version, `run` takes it in."""

    source: object
    put: Callable[[bytes], None]
    run: Callable[[], IngestionRun]

    @property
    def document(self) -> Document:
        return Document.objects.select_related("file").get(source=self.source)

    def answers(self) -> list[str]:
        return list(Chunk.objects.filter(document=self.document, document__tombstoned_at=None).values_list("text", flat=True))


def work(run: IngestionRun, *stages: str) -> IngestionRun:
    for stage in stages or STAGES:
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


@pytest.fixture(params=["upload", "channel"])
def shelf(request, knowledge_base, source, alice) -> Shelf:
    """With the old version answering."""
    if request.param == "upload":
        store_first(source, alice)
        made = Shelf(source, lambda content: put_unprobed(source, content, alice), lambda: work(start_run(source)))
    else:
        actor = actor_for_user(alice)
        channel = create_channel(actor, wanted=ChannelInput("Uploads", knowledge_base.id))

        def put(content: bytes) -> None:
            blob = blobs.store_bytes(knowledge_base.organization_id, content)
            channel_files.add_file(actor, channel, blob, upload=channel_files.Upload("Leave", type_name(content)))

        put(OLD)
        made = Shelf(channel.source, put, lambda: work(IngestionRun.objects.get(source=channel.source, finished_at=None)))
    made.run()
    assert "thirty days" in made.answers()[0]
    return made


def type_name(content: bytes) -> str:
    return "leave.pdf" if content.startswith(b"%PDF") else "leave.md"


def store_first(source, user) -> None:
    assert files.store_files(source, [SimpleUploadedFile("leave.md", OLD)], user=user).documents


def put_unprobed(source, content: bytes, user) -> None:
    """A file that was stored before the checks of uploads, or that changed under an extractor: its name stays, its bytes decide."""
    blob = blobs.store_bytes(source.organization_id, content)
    files._attach(source, [files.Incoming("leave.md", blob.size, None, blob=blob)], user)


def again(shelf: Shelf) -> IngestionRun:
    """A complete run over the source, as the next schedule would start it."""
    return work(start_run(shelf.source))


# --- refused on its content: the old version retires ---------------------------------------------------------------------


def assert_retired(shelf: Shelf, run: IngestionRun, reason: str) -> None:
    document = shelf.document
    assert run.status == "failed"
    assert RunItem.objects.get(run=run).reason == reason
    assert shelf.answers() == []
    assert (document.chunk_count, document.content_hash, document.answering_id) == (0, None, None)
    assert document.last_error.endswith(".")
    assert document.last_reason == reason
    assert document.tombstoned_at is None  # it is there, and can be replaced again
    shelf.put(NEW)
    shelf.run()
    assert "forty days" in shelf.answers()[0]
    assert (shelf.document.last_error, shelf.document.last_reason) == ("", "")


def test_an_encrypted_replacement_retires_what_it_replaced(shelf):
    shelf.put(text_pdf(["secret"], password="x"))
    assert_retired(shelf, shelf.run(), "encrypted")


def test_an_empty_replacement_retires_what_it_replaced(shelf):
    shelf.put(b" \n\n\t \n")
    assert_retired(shelf, shelf.run(), "empty")


def test_a_damaged_replacement_retires_what_it_replaced(shelf):
    shelf.put(b"%PDF-1.7\n%%EOF")
    assert_retired(shelf, shelf.run(), "damaged")


def test_a_replacement_over_a_counted_limit_retires_what_it_replaced(shelf):
    shelf.put(bomb_pdf(80))
    assert_retired(shelf, shelf.run(), "too_large")


# --- nothing was learned: the old version stays, and is not missed --------------------------------------------------------


def assert_kept(shelf: Shelf, reason: str) -> None:
    document = shelf.document
    assert "thirty days" in shelf.answers()[0]
    assert (document.last_reason, document.chunk_count) == (reason, 1)
    assert document.last_error
    file = document.file
    if document.source.kind == "channel":
        assert file_status.status_of(file) == "failed"
        assert file_status.failure_of(file)[2] is True
    for _ in range(3):  # more complete runs than a missing document survives
        shelf.source.refresh_from_db()
        again(shelf)
        assert "days" in shelf.answers()[0]
        assert (shelf.document.tombstoned_at, shelf.document.missed_runs) == (None, 0)


@pytest.fixture
def squeeze(monkeypatch) -> Callable[..., None]:
    """Real kills by real limits that nothing keeps."""

    def narrow(**limits: float) -> None:
        monkeypatch.setattr(extract, "plan_for", lambda run: squeezed(plan.plan_for(run), limits))
        monkeypatch.setattr("ingestion.stages.policies.plan_for", lambda run, policy: squeezed(plan.plan_for(run, policy), limits))

    return narrow


def squeezed(whole: plan.Plan, limits: dict) -> plan.Plan:
    return replace(whole, extract={**whole.extract, **limits})


def test_a_replacement_that_takes_too_long_keeps_what_it_replaced(shelf, squeeze):
    squeeze(max_seconds=0.02)
    shelf.put(SLOW)
    shelf.run()
    assert_kept(shelf, "time_limit")


def test_a_replacement_that_takes_too_much_memory_keeps_what_it_replaced(shelf, squeeze):
    squeeze(max_memory_mb=100)
    shelf.put(SLOW)
    shelf.run()
    assert shelf.document.last_reason in ("memory_limit", "crashed")
    assert_kept(shelf, shelf.document.last_reason)


def test_a_replacement_whose_worker_dies_keeps_what_it_replaced(shelf):
    shelf.put(NEW)
    run = IngestionRun.objects.filter(source=shelf.source, finished_at=None).first() or start_run(shelf.source)
    if run.listed_at is None:
        work(run, "crawl")
    RunItem.objects.filter(run=run).update(attempts=items.MAX_ATTEMPTS)  # as three workers that died at it left it
    work(run, "extract", "finish")
    assert_kept(shelf, "worker_died")


def test_a_storage_that_does_not_answer_keeps_what_was_replaced_and_is_asked_again(shelf):
    shelf.put(NEW)
    stored = Path(default_storage.path(shelf.document.file.blob.storage_key))
    away = stored.rename(stored.with_suffix(".away"))
    stored.mkdir()  # what is there cannot be read
    try:
        run = shelf.run()
        item = RunItem.objects.get(run=run)
        assert (run.is_open, item.stage, item.attempts) == (True, "fetched", 0)
        assert item.not_before > timezone.now()
        assert "thirty days" in shelf.answers()[0]
        assert shelf.document.last_error == ""
    finally:
        stored.rmdir()
        away.rename(stored)
    RunItem.objects.update(not_before=None)
    assert work(run).status == "succeeded"
    assert "forty days" in shelf.answers()[0]


def test_a_provider_that_refuses_keeps_what_was_replaced(shelf, monkeypatch):
    def refuse(*_, **__):
        raise PermanentProviderError("The key of the embedding provider is refused. Store a new one.")

    monkeypatch.setattr(HashingProvider, "embed_batch", refuse)
    shelf.put(NEW)
    shelf.run()
    monkeypatch.undo()
    assert "key of the embedding provider is refused" in shelf.document.last_error
    assert_kept(shelf, "embedding_failed")


def test_after_a_purge_a_killed_replacement_keeps_what_answers(shelf, squeeze):
    """Its chunks are the only copy: no sweep takes them for left over."""
    shelf.put(SLOW)
    if run := IngestionRun.objects.filter(source=shelf.source, finished_at=None).first():
        from ingestion import claims

        claims.cancel(run)
    purge_source(shelf.source)
    squeeze(max_seconds=0.02)
    for _ in range(3):
        run = again(shelf)
        assert RunItem.objects.get(run=run).reason in ("time_limit", "quarantined")
        assert "thirty days" in shelf.answers()[0]
    assert (shelf.document.tombstoned_at, shelf.document.missed_runs) == (None, 0)
