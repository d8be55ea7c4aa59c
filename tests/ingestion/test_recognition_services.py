"""Speech and descriptions by services that somebody bound, and speech by the engine of this installation, through the stages of a run."""

from importlib.util import find_spec
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from config.errors import ExtractionError
from ingestion.models import IngestionRun, RecognizedPart, RunItem
from ingestion.services import files
from ingestion.services.runs import start_run
from ingestion.stages import slices
from kb import blobs
from kb.models import Chunk, Document, ServiceBinding, Source
from kb.services import set_secret
from tests.samples.pictures import blank_page, saved
from tests.samples.sounds import wav_file
from tests.servers.media_server import MediaServer

pytestmark = pytest.mark.django_db
STAGES = ("crawl", "extract", "recognize", "extract", "embed", "publish", "finish")
SAID = "The meeting begins at nine. Everybody brings the figures of the last quarter."


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch):
    monkeypatch.setattr("ingestion.recognition.local_speech", lambda: "")


@pytest.fixture
def service():
    with MediaServer(said=SAID, seen="A bar chart of the sales in spring.") as server:
        yield server


@pytest.fixture
def bound(service):
    """Both purposes, by the operator, with a key of the installation."""
    set_secret(organization=None, name="media", value="sk-of-the-installation")
    for purpose in ("transcription", "vision"):
        ServiceBinding.objects.create(
            purpose=purpose, endpoint=service.endpoint, credential="media", model=f"test-{purpose}", is_default=True
        )
    return service


def put(source: Source, name: str, content: bytes) -> Document:
    return files.store_file(source, SimpleUploadedFile(name, content), limits=files.upload_limits(source))


def go(run: IngestionRun, *stages: str) -> IngestionRun:
    for stage in stages or STAGES:
        slices.work(stage, run.id, f"{run.id}:{uuid4().hex}")
    return IngestionRun.objects.get(id=run.id)


def test_a_recording_is_sent_in_stretches_and_becomes_lines_with_times(bound, source):
    document = put(source, "meeting.wav", wav_file((58, 0.3), (2, 0), (50, 0.3)))
    run = go(start_run(source))
    assert run.status == "succeeded", RunItem.objects.get(run=run).error
    document.refresh_from_db()
    lines = blobs.read_text(document.markdown).split("\n\n")
    assert lines == [f"[0:00:00] {SAID}", f"[0:00:58] {SAID}"]
    assert [round(request.seconds) for request in bound.requests] == [58, 52]  # cut in the pause, and "Thank you." is dropped
    assert {(request.authorization, request.model) for request in bound.requests} == {
        ("Bearer sk-of-the-installation", "test-transcription")
    }
    assert (document.metadata["transcribed"], document.metadata["transcribed_by"]) == (True, "test-transcription")
    assert document.metadata["transcription_confidence"] == pytest.approx(0.905, abs=0.01)
    assert Chunk.objects.filter(document=document, text__startswith="[0:00:").exists()


def test_silence_is_refused_and_not_sent(bound, source):
    put(source, "silence.wav", wav_file((1, 0)))
    run = go(start_run(source), "crawl", "extract", "recognize", "finish")
    item = RunItem.objects.get(run=run)
    assert (item.verdict, item.reason) == ("failed", "no_text")
    assert item.error.startswith("No speech was recognized in silence.wav.")
    assert bound.requests == []


def test_an_empty_transcript_is_refused(bound, source):
    bound.said = ""
    put(source, "hum.wav", wav_file((2, 0.3)))
    run = go(start_run(source), "crawl", "extract", "recognize", "finish")
    assert RunItem.objects.get(run=run).reason == "no_text"


def test_a_service_that_tells_no_times_is_enough(bound, source):
    bound.plain = True
    document = put(source, "note.wav", wav_file((3, 0.3), rate=44_100, channels=2))
    assert go(start_run(source)).status == "succeeded"
    document.refresh_from_db()
    assert blobs.read_text(document.markdown) == f"[0:00:00] {SAID}"


def test_a_busy_service_is_asked_again_and_a_refusal_ends_it(bound, source):
    put(source, "note.wav", wav_file((3, 0.3)))
    run = start_run(source)
    bound.fail_next = [503]
    go(run, "crawl", "extract", "recognize")
    part = RecognizedPart.objects.get()
    assert (part.text, part.error, part.failures, part.attempts) == (None, "", 1, 0)
    RecognizedPart.objects.update(not_before=None)
    bound.fail_next = [401]
    go(run, "recognize", "finish")
    item = RunItem.objects.get(run=run)
    assert item.reason == "not_recognized"
    assert "refuses the credential" in item.error
    assert "sk-of" not in item.error


def test_a_picture_is_described_where_a_model_is_bound(bound, source):
    document = put(source, "chart.png", saved(blank_page()))
    assert go(start_run(source)).status == "succeeded"
    document.refresh_from_db()
    assert blobs.read_text(document.markdown) == "Description: A bar chart of the sales in spring."
    assert document.metadata["described_by"] == "test-vision"


def test_without_engine_or_service_a_recording_is_refused_with_what_to_do(source):
    with pytest.raises(ExtractionError, match=r"note.wav is a recording, and no speech recognition is set up here. An operator installs"):
        put(source, "note.wav", wav_file((3, 0.3)))


def test_an_organizations_service_gets_no_secret_of_the_installation(service, source, organization):
    """Nor does it lead into a private network, where the local server is."""
    set_secret(organization=None, name="media", value="sk-of-the-installation")
    ServiceBinding.objects.create(
        organization=organization, purpose="transcription", endpoint=service.endpoint, credential="media", is_default=True
    )
    put(source, "note.wav", wav_file((3, 0.3)))
    run = go(start_run(source), "crawl", "extract", "recognize", "finish")
    assert RunItem.objects.get(run=run).verdict == "failed"
    assert service.requests == []


@pytest.mark.skipif(find_spec("faster_whisper") is None, reason="no local engine for speech is installed (requirements/audio.txt)")
def test_the_engine_of_this_installation_reads_speech(source, monkeypatch, settings):
    from pathlib import Path

    from ingestion.recognize.speech import speech_model

    recording = Path(__file__).resolve().parents[3] / "shared" / "data" / "documents" / "audio" / "sample_10s_audio-wav.wav"
    if not recording.is_file():
        pytest.skip("the real recording is not there (../shared/data/documents)")
    monkeypatch.setattr("ingestion.recognition.local_speech", speech_model)
    monkeypatch.setattr("ingestion.children.local_speech", speech_model)
    document = put(source, recording.name, recording.read_bytes())
    run = go(start_run(source))
    assert run.status == "succeeded", RunItem.objects.get(run=run).error
    document.refresh_from_db()
    assert blobs.read_text(document.markdown).startswith("[0:00:00] ")
