"""The end of a run happens once, however often its worker is killed on the way there."""

from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from ingestion.models import IngestionRun
from ingestion.services.files import store_files
from ingestion.services.runs import start_run
from ingestion.stages import finish, slices
from kb.models import Document, Source

pytestmark = pytest.mark.django_db


def go(run: IngestionRun, *stages: str) -> IngestionRun:
    for stage in stages:
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


def test_a_finish_that_is_cut_off_and_repeated_counts_one_miss(source, alice):
    """A document is removed after two runs that miss it, and not after one whose end was tried twice."""
    store_files(source, [SimpleUploadedFile(name, b"# Leave\n\nThirty days.\n") for name in ("a.md", "b.md")], user=alice)
    go(start_run(source, user=alice), "crawl", "extract", "embed", "publish", "finish")
    Document.objects.filter(key="a.md").update(file=None)  # an upload source loses nothing by itself
    run = go(start_run(source, user=alice), "crawl")
    finish._apply(run, finish._reconcile(run), slices.Slice("finish", f"{run.id}:1", run))  # here its worker is killed
    go(run, "finish")
    document = Document.objects.get(key="a.md")
    assert (document.missed_runs, document.tombstoned_at) == (1, None)
    go(start_run(source, user=alice), "crawl", "finish")
    document.refresh_from_db()
    assert document.tombstoned_at


def test_a_file_that_was_replaced_during_the_listing_is_taken_in_by_another_run(source, alice):
    """Whatever the clocks say: an upload may be committed after the listing that it began before."""
    store_files(source, [SimpleUploadedFile("a.md", b"# Leave\n\nThirty days.\n")], user=alice)
    run = go(start_run(source, user=alice), "crawl")
    store_files(source, [SimpleUploadedFile("a.md", b"# Leave\n\nForty days.\n")], user=alice)
    go(run, "extract", "embed", "publish", "finish")
    following = IngestionRun.objects.get(source=source, finished_at=None)
    assert following.trigger == "change"
    go(following, "crawl", "extract", "embed", "publish", "finish")
    assert not IngestionRun.objects.filter(source=source, finished_at=None).exists()
    assert "Forty" in Document.objects.get(source=source).chunks.get().text


def test_a_source_that_was_disabled_meanwhile_is_not_run_again(source, alice):
    run = go(start_run(source, user=alice), "crawl")
    store_files(source, [SimpleUploadedFile("a.md", b"# Leave\n\nThirty days.\n")], user=alice)
    Source.objects.filter(id=source.id).update(enabled=False)
    assert go(run, "finish").status == "succeeded"
    assert not IngestionRun.objects.filter(source=source, finished_at=None).exists()


def test_what_is_unchanged_after_an_error_is_indexed_again(source, alice):
    from ingestion.services.documents import with_state_of

    store_files(source, [SimpleUploadedFile("a.md", b"# Leave\n\nThirty days.\n")], user=alice)
    go(start_run(source, user=alice), "crawl", "extract", "embed", "publish", "finish")
    Document.objects.update(last_error="The provider was out of reach.")  # under settings that were taken back
    go(start_run(source, user=alice), "crawl", "finish")
    assert with_state_of(Document.objects.get()).state == "indexed"
