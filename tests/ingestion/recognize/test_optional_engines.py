"""Engines and decoders of requirements/ocr.txt and audio.txt in a child that is closed in: threads, models and all."""

import base64
import io
import wave
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from config.errors import ExtractionError
from ingestion.extract.sandbox import Sandbox
from ingestion.recognize.engines import PrintEngine
from ingestion.recognize.speech import speech_model
from tests.ingestion.recognize.test_pictures import f1
from tests.samples.pictures import LEAVE, print_page, saved
from tests.samples.sounds import encoded, wav_file

needs_rapid = pytest.mark.skipif(not (find_spec("rapidocr") and find_spec("onnxruntime")), reason="needs requirements/ocr.txt")
needs_decoder = pytest.mark.skipif(find_spec("av") is None, reason="needs requirements/audio.txt")
needs_speech = pytest.mark.skipif(not speech_model(), reason="needs requirements/audio.txt")
LIMITS = {"max_seconds": 60, "max_memory_mb": 1536}
SPANS = ((2, 0.3), (1, 0.0), (2, 0.3))
SECONDS = 5.0
SAID = "Shakespeare on scenery by Oscar Wilde. This is a Librivox recording. All Librivox recordings are in the public domain."


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    model = speech_model()
    with Sandbox(size=1, languages=False, readable=[Path(model)] if model else []) as sandbox:
        yield sandbox


def recognize(sandbox: Sandbox, path: Path, **more: object) -> dict:
    request = {"op": "recognize", "path": str(path), "name": path.name, "limits": LIMITS, "engine": None, "languages": ["eng"]}
    return sandbox.run({**request, **more})


def stretch(end: float) -> dict:
    return {"kind": "speech", "page": None, "start": 0.0, "end": end, "last": True}


@needs_rapid
def test_rapidocr_reads_a_page(sandbox, tmp_path):
    path = tmp_path / "page.png"
    path.write_bytes(saved(print_page()))
    part = {"kind": "picture", "page": 1, "start": None, "end": None}
    found = recognize(sandbox, path, part=part, engine=asdict(PrintEngine("rapidocr")))["recognized"]
    assert found["engine"] == "rapidocr"
    assert f1(found["text"], " ".join(LEAVE)) > 0.95
    assert sandbox.peak_rss_mb < 1200


@needs_decoder
@pytest.mark.parametrize(("format", "codec"), [("mp3", "libmp3lame"), ("ipod", "aac"), ("ogg", "libopus"), ("flac", "flac")])
def test_compressed_recordings_are_unpacked(sandbox, tmp_path, format, codec):
    path = tmp_path / {"ipod": "note.m4a"}.get(format, f"note.{format}")
    path.write_bytes(encoded(wav_file(*SPANS, rate=48_000), format=format, codec=codec))
    request = {"op": "extract", "path": str(path), "name": path.name, "declared_type": None, "limits": {"speech": "auto"}, "chunk": None}
    extracted = sandbox.run(request)["extracted"]
    assert extracted["metadata"]["seconds"] == pytest.approx(SECONDS, abs=0.2)
    prepared = recognize(sandbox, path, part=stretch(extracted["metadata"]["seconds"]), prepare=True)
    with wave.open(io.BytesIO(base64.b64decode(prepared["prepared"]))) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2") / 32768
    assert len(samples) / 16_000 == pytest.approx(SECONDS, abs=0.2)
    loud = [float(np.abs(samples[int(at * 16_000) :][:8_000]).max()) for at in (0.75, 2.25, 3.75)]
    assert loud[0] > 0.1
    assert loud[1] < 0.02
    assert loud[2] > 0.1


@needs_decoder
def test_a_damaged_recording_is_refused(sandbox, tmp_path):
    path = tmp_path / "note.ogg"
    path.write_bytes(encoded(wav_file(*SPANS), format="ogg", codec="libopus")[:60] + b"\0" * 3000)
    request = {"op": "extract", "path": str(path), "name": path.name, "declared_type": None, "limits": {"speech": "auto"}, "chunk": None}
    with pytest.raises(ExtractionError) as caught:
        sandbox.run(request)
    assert caught.value.reason in ("damaged", "empty")


@needs_speech
def test_whisper_reads_a_real_recording(sandbox, shared_documents):
    path = shared_documents / "audio" / "sample_10s_audio-wav.wav"
    found = recognize(sandbox, path, part=stretch(10.0), speech={"model": speech_model(), "language": ""})["recognized"]
    assert found["engine"] == "whisper tiny.en"
    assert f1(found["text"].removeprefix("[0:00:00] "), SAID) > 0.75
    assert sandbox.peak_rss_mb < 1200


@needs_speech
def test_nothing_is_made_up_for_a_tone(sandbox, tmp_path):
    path = tmp_path / "tone.wav"
    path.write_bytes(wav_file((5, 0.3)))
    assert recognize(sandbox, path, part=stretch(5.0), speech={"model": speech_model(), "language": ""})["recognized"]["text"] == ""
