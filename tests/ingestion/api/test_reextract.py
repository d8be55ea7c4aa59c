"""Reading a source again: by the API, the command and an update of the extractors."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ingestion.extract.base import EXTRACTOR_VERSION
from ingestion.models import IngestionRun, RunItem
from kb.models import Chunk, Document

pytestmark = pytest.mark.django_db


@pytest.fixture
def indexed(upload, run_now):
    upload(("a.md", b"# A\n\nThirty days of leave.\n"), ("b.md", b"# B\n\nForty days of leave.\n"))
    run_now()
    return {document.key: document for document in Document.objects.all()}


def test_the_version_of_the_extractor_stands_beside_the_fingerprint(indexed):
    assert {document.extractor_version for document in indexed.values()} == {EXTRACTOR_VERSION}
    assert all(document.extract_fingerprint for document in indexed.values())


def test_everything_is_read_again_and_what_stays_the_same_costs_nothing(indexed, editor, source_url, work):
    chunks = set(Chunk.objects.values_list("id", flat=True))
    answer = editor.post(f"{source_url}/reextract")
    assert (answer.status_code, answer.json()["documents"]) == (202, 2)
    assert set(Chunk.objects.values_list("id", flat=True)) == chunks, "what stands answers meanwhile"
    run = work(answer.json()["run_id"])
    assert run.status == "succeeded"
    items = RunItem.objects.filter(run=run)
    assert [(item.verdict, item.embeddings_computed, item.embeddings_reused) for item in items] == [("ingested", 0, 1)] * 2
    assert set(Chunk.objects.values_list("id", flat=True)) == chunks


def test_only_what_an_older_extractor_read(indexed, editor, source_url, work):
    Document.objects.filter(key="a.md").update(extractor_version="0")
    answer = editor.post(f"{source_url}/reextract?outdated=true")
    assert answer.json()["documents"] == 1
    run = work(answer.json()["run_id"])
    assert dict(RunItem.objects.filter(run=run).values_list("key", "verdict")) == {"a.md": "ingested", "b.md": "unchanged"}
    assert set(Document.objects.values_list("extractor_version", flat=True)) == {EXTRACTOR_VERSION}
    again = editor.post(f"{source_url}/reextract?outdated=true").json()
    assert again["documents"] == 0


def test_cutting_again_is_no_reading_again(indexed, editor, source_url, run_now):
    Document.objects.update(extractor_version="0", chunk_fingerprint="other")
    run_now()
    assert set(Document.objects.values_list("extractor_version", flat=True)) == {"0"}


def test_who_may_and_when(indexed, viewer, stranger, editor, source_url):
    assert viewer.post(f"{source_url}/reextract").status_code == 403
    assert stranger.post(f"{source_url}/reextract").status_code == 404
    started = editor.post(f"{source_url}/reextract").json()
    busy = editor.post(f"{source_url}/reextract")
    assert (busy.status_code, busy.json()["run_id"]) == (409, started["run_id"])


def test_the_command(indexed, source, knowledge_base, work):
    out = StringIO()
    call_command("reextract", "--source", str(source.id), stdout=out)
    run = IngestionRun.objects.filter(finished_at=None).get()
    assert out.getvalue() == f"{source}: run {run.id} reads 2 documents again.\n"
    with pytest.raises(CommandError, match="1 sources were not started"):
        call_command("reextract", "--knowledge-base", str(knowledge_base.id), stdout=out, stderr=StringIO())
    with pytest.raises(CommandError, match="no such source"):
        call_command("reextract", "--source", "nothing")
