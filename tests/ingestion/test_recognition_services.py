"""Speech and descriptions by services that somebody bound, and speech by the engine of this installation, through the stages of a run."""

import json
from importlib.util import find_spec
from uuid import uuid4

import pytest
from django.utils import timezone

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
    return files.keep_blob(source, blobs.store_bytes(source.organization_id, content), name=name, declared_type=None, user=None)


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


def test_an_answer_with_what_no_database_holds_is_cleaned_and_asked_for_once(bound, source):
    bound.seen = "A chart \ud800 of \x00 spring."
    document = put(source, "chart.png", saved(blank_page()))
    assert go(start_run(source)).status == "succeeded"
    document.refresh_from_db()
    assert blobs.read_text(document.markdown) == "Description: A chart \ufffd of  spring."
    assert len(bound.requests) == 1


@pytest.mark.parametrize(
    "odd",
    [{"start": "abc"}, {"end": "1e999"}, {"avg_logprob": 1e9}, {"no_speech_prob": "x"}, {"start": -5, "end": [1]}, {"avg_logprob": {}}],
    ids=str,
)
def test_numbers_that_are_none_cost_no_second_call(bound, source, odd):
    segment = {"start": 0, "end": 2, "text": " Nine \ud800 o'clock.\x00", "avg_logprob": -0.1, "no_speech_prob": 0.01} | odd
    bound.answer_next = [json.dumps({"text": "Nine", "language": "\x00\ud800", "segments": [segment]}).encode()]
    document = put(source, "note.wav", wav_file((3, 0.3)))
    assert go(start_run(source)).status == "succeeded"
    document.refresh_from_db()
    assert blobs.read_text(document.markdown) == "[0:00:00] Nine \ufffd o'clock."
    assert len(bound.requests) == 1


@pytest.mark.parametrize("duration", [b'"x"', b"NaN", b"1e999", b"-1"])
def test_a_duration_that_is_none_costs_no_second_call(bound, source, duration):
    bound.answer_next = [b'{"text": "Nine.\\u0000", "duration": %s}' % duration]
    put(source, "note.wav", wav_file((3, 0.3)))
    assert go(start_run(source)).status == "succeeded"
    assert len(bound.requests) == 1


def test_an_answer_that_cannot_be_kept_counts_as_a_failure(bound, source, monkeypatch):
    def refuse(row, found):
        raise ValueError("no room for it")

    monkeypatch.setattr("ingestion.stages.recognize._keep", refuse)
    put(source, "note.wav", wav_file((3, 0.3)))
    go(start_run(source), "crawl", "extract", "recognize")
    part = RecognizedPart.objects.get()
    assert part.failures == len(bound.requests) >= 1
    assert (part.attempts, part.lease_token) == (0, None)
    assert part.not_before is not None


def test_a_slow_service_is_let_alone_after_each_call_and_asked_three_times(bound, source, monkeypatch):
    """The slot of the stage is everybody's: what waits for that service waits with it, and longer each time."""
    monkeypatch.setattr("ingestion.recognizing.LONGEST_CALL_SECONDS", 1.0)
    bound.slow_seconds = 1.5
    for name, seconds in (("first.wav", 3), ("second.wav", 4)):
        put(source, name, wav_file((seconds, 0.3)))
    run = start_run(source)
    go(run, "crawl", "extract", "recognize")
    assert len(bound.requests) == 1
    assert sorted(RecognizedPart.objects.values_list("failures", flat=True)) == [0, 1]
    now = timezone.now()
    assert all((part.not_before - now).total_seconds() > 1 for part in RecognizedPart.objects.all())
    tried = RecognizedPart.objects.get(failures=1).id
    for _ in range(2):
        RecognizedPart.objects.filter(id=tried).update(not_before=None)
        go(run, "recognize")
    assert RecognizedPart.objects.get(id=tried).error
    assert len(bound.requests) == 3


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
