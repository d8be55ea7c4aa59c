"""What can be recognized for an organization, and by what: engines of this installation, and models that somebody registered."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from ingestion.extract.base import Part
from ingestion.recognize.engines import PrintEngine, print_engine
from kb.schemas.fingerprints import fingerprint


@dataclass(frozen=True, slots=True)
class Recognition:
    """`ocr` is the source's setting. What reads a kind of part is None where nothing does."""

    ocr: str
    engine: PrintEngine | None
    languages: tuple[str, ...]

    def limits(self) -> dict[str, str]:
        """What an extractor is told of it."""
        return {"ocr": "off" if self.ocr == "off" else "auto" if self.engine else "missing", "speech": "missing"}

    def parts_of(self, found: Sequence[Part]) -> list[Part]:
        """The parts of a file as they are to be read here."""
        return list(found)

    def recipe(self, kind: str) -> str:
        """What parts of this kind are read by: with another recipe they are read again."""
        return fingerprint({"engine": self.engine.name if self.engine else "", "languages": self.languages}, stage="recognize")

    def request(self, part: Mapping[str, Any], *, path: str, name: str) -> dict[str, Any]:
        """For the child that recognizes."""
        limits = {"max_seconds": settings.ENV.recognize_seconds, "max_memory_mb": settings.ENV.recognize_memory_mb}
        engine = {"engine": asdict(self.engine) if self.engine else None, "languages": list(self.languages)}
        return {"op": "recognize", "path": path, "name": name, "part": dict(part), "limits": limits, **engine}


def recognition_for(organization_id: UUID, *, ocr: str) -> Recognition:
    return Recognition(ocr=ocr, engine=print_engine(), languages=settings.ENV.ocr_languages)
