"""What can be recognized for an organization, and by what: engines of this installation, and services that somebody bound."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from config.errors import ExtractionError, InvalidInput
from ingestion.extract.base import Part
from ingestion.recognize.engines import PrintEngine, print_engine
from ingestion.recognize.speech import speech_model
from kb.bindings import service_for
from kb.models import ServiceBinding
from kb.schemas.fingerprints import fingerprint
from kb.schemas.policy import Policy

Purpose = ServiceBinding.Purpose


@dataclass(frozen=True, slots=True)
class Recognition:
    """`ocr` is what source and policy say. What reads a kind of part is None or "" where nothing does; `fault` says why a service that the
    policy names may not be called."""

    ocr: str
    policy: Policy
    engine: PrintEngine | None
    languages: tuple[str, ...]
    speech: str
    vision: ServiceBinding | None = None
    transcription: ServiceBinding | None = None
    fault: str = ""

    def limits(self) -> dict[str, str]:
        """What an extractor is told of it."""
        pictures = "auto" if self.engine else "described" if self.vision else "missing"
        speaks = self.speech or self.transcription or self.fault
        return {"ocr": "off" if self.ocr == "off" else pictures, "speech": "auto" if speaks else "missing"}

    def parts_of(self, found: Sequence[Part]) -> list[Part]:
        """The parts of a file as they are to be read here: a picture is read, described, or both. Raises ExtractionError."""
        if self.fault and found[0].kind in ("picture", "speech"):
            raise ExtractionError(self.fault, reason="not_bound")
        parts: list[Part] = []
        for part in found:
            if part.kind != "picture" or self.engine:
                parts.append(part)
            if part.kind == "picture" and self.vision:
                parts.append(Part("description", page=part.page))
        return parts

    def recipe(self, kind: str) -> str:
        """What parts of a file with such parts are read by: with another recipe they are read again."""
        if kind == "speech":
            service, engine, hints = self.transcription, Path(self.speech).name, self.policy.transcribe
        else:
            service, hints = self.vision if kind == "picture" else None, self.policy.vision
            engine = self.engine.name if self.engine else ""
        asked = {"service": [service.endpoint, service.model], "hints": hints.model_dump(mode="json")} if service else {}
        spoken = {"language": hints.language} if kind == "speech" else {}
        return fingerprint({"engine": engine, "languages": self.languages, **spoken, **asked}, stage="recognize")

    def request(self, part: Mapping[str, Any], *, path: str, name: str) -> dict[str, Any]:
        """For the child that recognizes; with `prepare` it only makes the part ready for a service."""
        limits = {"max_seconds": settings.ENV.recognize_seconds, "max_memory_mb": settings.ENV.recognize_memory_mb}
        return {
            "op": "recognize",
            "path": path,
            "name": name,
            "part": dict(part),
            "limits": limits,
            "engine": asdict(self.engine) if self.engine else None,
            "languages": list(self.languages),
            "speech": {"model": self.speech, "language": self.policy.transcribe.language or ""},
            "prepare": part["kind"] == "description" or (part["kind"] == "speech" and self.transcription is not None),
        }


@cache
def local_speech() -> str:
    """The folder of the model for speech that this installation has, or ""."""
    return speech_model(settings.ENV.speech_model)


def recognition_for(organization_id: UUID, *, ocr: str, policy: Policy | None = None) -> Recognition:
    policy = policy or Policy()
    found: dict[str, ServiceBinding | None] = {"vision": None, "transcription": None}
    fault = ""
    for name, service in (("vision", policy.vision), ("transcription", policy.transcribe)):
        try:
            found[name] = service_for(organization_id, purpose=Purpose(name), service=service)
        except InvalidInput as error:
            fault = error.message
    return Recognition(ocr, policy, print_engine(), settings.ENV.ocr_languages, local_speech(), **found, fault=fault)
