"""Recordings: nothing is read here; each stretch of about a minute is a part that is left to speech recognition."""

from pathlib import Path

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, Part, Served
from ingestion.extract.media import media_format
from ingestion.recognize.sound import duration, stretches
from ingestion.recognize.speech import INSTALL_SPEECH

MOST_SECONDS = 12 * 3600


class AudioExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        if limits.speech != "auto":
            happened = f"{name} is a recording, and no speech recognition is set up here."
            raise ExtractionError(happened, advice=INSTALL_SPEECH, reason="no_engine")
        seconds = duration(data, name=name)
        if seconds <= 0:
            raise ExtractionError(f"{name} holds no sound.", advice="Upload a recording.", reason="empty", retires=True)
        cut = seconds > MOST_SECONDS
        return Extracted(
            markdown="",
            title=Path(name).stem,
            media_type=_media_type(data, name=name),
            metadata={"seconds": round(seconds, 1)},
            truncated=cut,
            warnings=["Only the first 12 hours were read."] if cut else [],
            parts=[Part("speech", start=start, end=end) for start, end in stretches(min(seconds, MOST_SECONDS))],
        )


def _media_type(data: Path, *, name: str) -> str:
    with data.open("rb") as file:
        found = media_format(file.read(64), suffix=Path(name).suffix.lower().removeprefix("."))
    return found[1] if found else "audio/wav"
