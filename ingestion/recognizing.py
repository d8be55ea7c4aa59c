"""A part that a service recognizes: sent as the child made it ready, its answer in the form in which an engine's comes."""

import base64
import math
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings

from config.errors import ExtractionError
from ingestion.extract.encodings import clean
from ingestion.recognition import Recognition
from ingestion.recognize.base import Recognized
from ingestion.recognize.speech import transcript
from kb.bindings import service_spec
from kb.providers.media import describe_picture, transcribe

# Whisper's own rule for a stretch in which nobody speaks: what it then says is made up.
NO_SPEECH_ABOVE, UNLIKELY_BELOW = 0.6, -1.0
# A call that takes longer is given up: the slot of the stage serves every organization.
LONGEST_CALL_SECONDS = 30.0
LONGEST_TIME = 86_400.0  # seconds of a recording; what a service tells beyond is no time


def ask_service(recognition: Recognition, kind: str, prepared: Mapping[str, Any], *, organization_id: UUID) -> Recognized:
    """Raises ProviderError and its kin, and ExtractionError where the service was taken away meanwhile."""
    policy, seconds = recognition.policy, min(LONGEST_CALL_SECONDS, settings.ENV.recognize_seconds)
    content = base64.b64decode(prepared["prepared"])
    binding = recognition.vision if kind == "description" else recognition.transcription
    if binding is None:
        message = recognition.fault or "The service that was to recognize it is not bound any more. Run again."
        raise ExtractionError(message, reason="not_bound")
    if kind == "description":
        spec = service_spec(binding, organization_id=organization_id, model=policy.vision.model or "")
        said = describe_picture(spec, content, prepared["media_type"], prompt=policy.vision.prompt or "", seconds=seconds)
        said = _text(said)
        return Recognized(f"Description: {said}" if said else "", engine=spec.model)
    hints = policy.transcribe
    spec = service_spec(binding, organization_id=organization_id, model=hints.model or "")
    answer = transcribe(spec, content, language=hints.language or "", prompt=hints.prompt or "", seconds=seconds)
    language = _text(answer.get("language"))[:16]
    return transcript(_said(answer), prepared["begin"], engine=spec.model, language=language)


def _said(answer: Mapping[str, Any]) -> list[tuple[float, float, str, float | None]]:
    """Pieces of a transcript. Of a number that is none, only the number is lost: the words were heard, and paid."""
    segments = answer.get("segments")
    if not isinstance(segments, list) or not segments:
        text = _text(answer["text"])
        return [(0.0, _time(answer.get("duration")), text, None)] if text else []
    return [_piece(segment) for segment in segments if isinstance(segment, dict) and _is_said(segment)]


def _is_said(segment: Mapping[str, Any]) -> bool:
    silent, likely = _number(segment.get("no_speech_prob")) or 0.0, _number(segment.get("avg_logprob")) or 0.0
    return bool(_text(segment.get("text"))) and not (silent > NO_SPEECH_ABOVE and likely < UNLIKELY_BELOW)


def _piece(segment: Mapping[str, Any]) -> tuple[float, float, str, float | None]:
    start, told = _time(segment.get("start")), _number(segment.get("avg_logprob"))
    # A logarithm of a probability is at most 0.
    confidence = math.exp(told) if told is not None and told <= 0 else None
    return start, max(start, _time(segment.get("end"))), _text(segment["text"]), confidence


def _text(told: object) -> str:
    """Without what the database refuses: NULs, lone surrogates."""
    return clean(str(told or ""))[0].strip()


def _time(told: object) -> float:
    return min(LONGEST_TIME, max(0.0, _number(told) or 0.0))


def _number(told: object) -> float | None:
    """What is said as a finite number, else None."""
    try:
        value = float(told)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
