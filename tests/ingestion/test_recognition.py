"""Files whose text is recognized, through the stages of a run: parts as rows, one commit a part, and what comes of them."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from config.errors import ExtractionError
from ingestion import claims, recognition
from ingestion.models import IngestionRun, RecognizedPart, RunItem
from ingestion.models.parts import WAITING
from ingestion.recognize.engines import print_engine
from ingestion.services import files
from ingestion.services.runs import start_run
from ingestion.stages import recognize, slices
from kb import blobs, services, versioning
from kb.models import Chunk, Document, KnowledgeBase, Source
from tests.samples.pictures import LEAVE, PARKING, blank_page, print_page, saved, tiff

pytestmark = pytest.mark.django_db
needs_engine = pytest.mark.skipif(print_engine() is None, reason="no text recognition is installed (Debian: apt install tesseract-ocr)")
STAGES = ("crawl", "extract", "recognize", "extract", "embed", "publish", "finish")


def put(source: Source, name: str, content: bytes) -> Document:
    return files.keep_blob(source, blobs.store_bytes(source.organization_id, content), name=name, declared_type=None, user=None)


def go(run: IngestionRun, *stages: str) -> IngestionRun:
    for stage in stages or STAGES:
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


def waiting() -> int:
    return RecognizedPart.objects.filter(WAITING).count()


@needs_engine
def test_a_scan_of_two_pages_becomes_a_document_with_pages(source):
    document = put(source, "rules.tiff", tiff([print_page(LEAVE), print_page(PARKING, degrees=180)]))
    run = go(start_run(source))
    assert run.status == "succeeded", RunItem.objects.get(run=run).error
    document.refresh_from_db()
    assert document.metadata["ocr"] is True
    assert document.metadata["ocr_confidence"] > 0.8
    assert document.metadata["ocr_pages"] == 2
    assert document.metadata["ocr_rotated_pages"] == [2]
    assert [span["page"] for span in document.page_spans] == [1, 2]
    assert document.language == "en"
    chunk = Chunk.objects.get(document=document, text__contains="Bicycles may stand under the roof")
    assert chunk.page_end == 2
    assert run.counters["parts"] == 2
    go(start_run(source), "crawl")
    assert RunItem.objects.filter(verdict="unchanged").count() == 1


@needs_engine
def test_what_was_read_is_never_read_again(source):
    """A run is cancelled at page 2 of 3; the next one goes on there."""
    put(source, "rules.tiff", tiff([print_page(LEAVE), print_page(PARKING), print_page(LEAVE)]))
    run = start_run(source)
    go(run, "crawl", "extract")
    one = recognize._take(run, uuid4())
    assert (one.row.page, one.row.attempts) == (1, 1)
    recognize._work_part(run, one, recognize._Files())
    claims.cancel(run)
    assert waiting() == 2
    RecognizedPart.objects.filter(page=1).update(text="Read before.")
    assert go(start_run(source)).status == "succeeded"
    assert blobs.read_text(Document.objects.get(source=source).markdown).startswith("Read before.\n\nParking spaces")


@needs_engine
def test_a_killed_worker_repeats_the_page_in_flight_and_gives_it_up_in_the_end(source):
    put(source, "rules.tiff", tiff([print_page(LEAVE), print_page(PARKING)]))
    run = start_run(source)
    go(run, "crawl", "extract")
    for death in range(1, recognize.MAX_ATTEMPTS + 1):
        taken = recognize._take(run, uuid4())  # its worker dies: nobody gives it back
        assert (taken.row.page, taken.row.attempts) == (1, death)
        RecognizedPart.objects.filter(id=taken.row.id).update(lease_until=timezone.now() - timedelta(hours=1))
    assert go(run, "recognize", "extract", "embed", "publish", "finish").status == "succeeded"
    document = Document.objects.get(source=source)
    assert [span["page"] for span in document.page_spans] == [2]
    assert "Its worker died 3 times" in RunItem.objects.get(run=run).warnings[0]


@needs_engine
def test_a_picture_without_text_is_refused_at_the_run_and_not_stored_as_empty(source):
    document = put(source, "blank.png", saved(blank_page()))
    run = go(start_run(source), "crawl", "extract", "recognize", "finish")
    item = RunItem.objects.get(run=run)
    assert (run.status, item.verdict, item.reason) == ("failed", "failed", "no_text")
    assert item.error == "No text was recognized in blank.png. Upload a sharper picture, or a file with text."
    document.refresh_from_db()
    assert (document.chunk_count, document.last_error) == (0, item.error)


@needs_engine
def test_an_empty_replacement_retires_the_version_before_it(source):
    put(source, "note.png", saved(print_page()))
    go(start_run(source))
    assert Chunk.objects.count() == 1
    put(source, "note.png", saved(blank_page()))
    go(start_run(source), "crawl", "extract", "recognize", "finish")
    assert Chunk.objects.count() == 0


@needs_engine
def test_a_page_that_cannot_be_read_costs_its_page_alone(source):
    put(source, "rules.tiff", tiff([print_page(LEAVE), print_page(PARKING)]))
    run = start_run(source)
    go(run, "crawl", "extract")
    RecognizedPart.objects.filter(page=1).update(page=7)  # a page that the file does not have
    go(run, "recognize", "extract", "embed", "publish", "finish")
    assert Document.objects.get(source=source).chunk_count == 1
    assert RunItem.objects.get(run=run).warnings[0].startswith("Picture 7 is missing: ")


@needs_engine
def test_parts_that_were_collected_meanwhile_are_wanted_again(source):
    put(source, "note.png", saved(print_page()))
    run = go(start_run(source), "crawl", "extract")
    RecognizedPart.objects.all().delete()
    go(run, "recognize")
    assert RunItem.objects.get(run=run).stage == RunItem.Stage.FETCHED
    assert go(run, "extract", "recognize", "extract", "embed", "publish", "finish").status == "succeeded"


def test_without_an_engine_the_upload_is_refused_with_what_to_install(source, monkeypatch):
    monkeypatch.setattr(recognition, "print_engine", lambda: None)
    with pytest.raises(ExtractionError) as caught:
        put(source, "note.png", saved(print_page()))
    assert caught.value.message.startswith("note.png is a picture, and no text recognition is installed here. An operator installs")
    assert not caught.value.retires


@pytest.fixture
def without_ocr(actor, knowledge_base):
    document = {**knowledge_base.current.document}
    document["sources"] = [{**entry, "settings": {**entry["settings"], "ocr": "off"}} for entry in document["sources"]]
    versioning.publish(knowledge_base, document=document, expected=knowledge_base.current.number, actor=actor)
    return KnowledgeBase.objects.get(id=knowledge_base.id)


def test_a_source_may_refuse_pictures(without_ocr):
    source = Source.objects.get(knowledge_base=without_ocr, name="files")
    with pytest.raises(ExtractionError, match=r"note.png is a picture, and text recognition is off for this source. Set settings.ocr"):
        put(source, "note.png", saved(print_page()))


@needs_engine
def test_nobody_sees_what_another_organization_recognized(source, other_organization, mallory):
    from kb.access import actor_for_user

    put(source, "note.png", saved(print_page()))
    go(start_run(source))
    theirs = services.create_knowledge_base(actor_for_user(mallory), document={"name": "X", "sources": [{"name": "f", "type": "upload"}]})
    other = Source.objects.get(knowledge_base=theirs, name="f")
    put(other, "note.png", saved(print_page()))
    go(start_run(other), "crawl", "extract")
    assert RecognizedPart.objects.filter(organization=other_organization, text=None).count() == 1


@needs_engine
def test_a_preview_tells_of_a_scan_without_recognizing_it(source):
    from ingestion.services.previews import preview_source

    put(source, "note.png", saved(print_page()))
    found = preview_source(source)
    assert (found.counts["new"], found.chunks, RecognizedPart.objects.count()) == (1, 0, 0)


@needs_engine
def test_a_waiting_scan_tells_how_many_parts_are_left(source):
    from ingestion.counters import count_items

    put(source, "rules.tiff", tiff([print_page(LEAVE), print_page(PARKING)]))
    run = start_run(source)
    go(run, "crawl", "extract")
    assert {name: count_items(run)[name] for name in ("parts", "parts_waiting")} == {"parts": 2, "parts_waiting": 2}
    taken = recognize._take(run, uuid4())
    recognize._work_part(run, taken, recognize._Files())
    assert count_items(run)["parts_waiting"] == 1
