"""Recordings: nothing is read here; each stretch of about a minute is a part that is left to speech recognition."""

from pathlib import Path

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, Served

INSTALL_SPEECH = "An operator installs requirements/audio.txt, or registers a transcription model."


class AudioExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        raise ExtractionError(
            f"{name} is a recording, and no speech recognition is installed here.", advice=INSTALL_SPEECH, reason="no_engine"
        )
