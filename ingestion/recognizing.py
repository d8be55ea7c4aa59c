"""A part that a service recognizes: sent as the child made it ready, its answer in the form in which an engine's comes."""

import base64
import math
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings

from config.errors import ExtractionError
from ingestion.recognition import Recognition
from ingestion.recognize.base import Recognized
from ingestion.recognize.speech import transcript
from kb.bindings import service_spec
from kb.providers.media import describe_picture, transcribe

# Whisper's own rule for a stretch in which nobody speaks: what it then says is made up.
NO_SPEECH_ABOVE, UNLIKELY_BELOW = 0.6, -1.0


def ask_service(recognition: Recognition, kind: str, prepared: Mapping[str, Any], *, organization_id: UUID) -> Recognized:
    """Raises ProviderError and its kin, and ExtractionError where the service was taken away meanwhile."""
    policy, seconds = recognition.policy, settings.ENV.recognize_seconds
    content = base64.b64decode(prepared["prepared"])
    binding = recognition.vision if kind == "description" else recognition.transcription
    if binding is None:
        message = recognition.fault or "The service that was to recognize it is not bound any more. Run again."
        raise ExtractionError(message, reason="not_bound")
    if kind == "description":
        spec = service_spec(binding, organization_id=organization_id, model=policy.vision.model or "")
        said = describe_picture(spec, content, prepared["media_type"], prompt=policy.vision.prompt or "", seconds=seconds)
        return Recognized(f"Description: {said}" if said else "", engine=spec.model)
    hints = policy.transcribe
    spec = service_spec(binding, organization_id=organization_id, model=hints.model or "")
    answer = transcribe(spec, content, language=hints.language or "", prompt=hints.prompt or "", seconds=seconds)
    language = str(answer.get("language") or "")[:16]
    return transcript(_said(answer), prepared["begin"], engine=spec.model, language=language)


def _said(answer: Mapping[str, Any]) -> list[tuple[float, float, str, float | None]]:
    segments = answer.get("segments")
    if not isinstance(segments, list) or not segments:
        return [(0.0, float(answer.get("duration") or 0.0), answer["text"].strip(), None)] if answer["text"].strip() else []
    return [_piece(segment) for segment in segments if isinstance(segment, dict) and _is_said(segment)]


def _is_said(segment: Mapping[str, Any]) -> bool:
    unlikely = float(segment.get("no_speech_prob") or 0) > NO_SPEECH_ABOVE and float(segment.get("avg_logprob") or 0) < UNLIKELY_BELOW
    return bool(str(segment.get("text") or "").strip()) and not unlikely


def _piece(segment: Mapping[str, Any]) -> tuple[float, float, str, float | None]:
    told = segment.get("avg_logprob")
    start, end = float(segment.get("start") or 0), float(segment.get("end") or 0)
    return start, end, str(segment["text"]).strip(), math.exp(told) if isinstance(told, int | float) else None
