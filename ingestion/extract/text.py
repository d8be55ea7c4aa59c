"""Text files of any encoding; code, data and logs go into a fenced block so that chunking keeps them together."""

from pathlib import Path

from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.encodings import Decoded, decode
from ingestion.extract.fences import FENCE_LANGUAGES, fence
from ingestion.extract.sniff import extension

MEDIA_TYPES = {"json": "application/json", "yaml": "application/yaml", "xml": "application/xml"}

# UTF-32 is the widest encoding; the rest allows for line ends and marks that are dropped.
MAX_BYTES_PER_CHAR = 5
FENCE_ROOM = 40


class TextExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        decoded = read_text(data, limits=limits, served=served)
        language = FENCE_LANGUAGES.get(extension(name))
        truncated = decoded.cut
        text = decoded.text
        if language is not None:
            # The fence must stand inside the limit and be closed, so the text is cut here and not by the caller.
            room = max(1, limits.max_chars - FENCE_ROOM)
            truncated = truncated or len(text) > room
            text = fence(text[:room], language=language)
        return Extracted(
            markdown=text,
            title=Path(name).name,
            media_type=MEDIA_TYPES.get(language or "", "text/plain"),
            metadata={"encoding": decoded.encoding},
            truncated=truncated,
            warnings=decoded.warnings,
        )


def read_text(data: Path, *, limits: Limits, served: Served | None) -> Decoded:
    """Reads no more of the file than could be kept: a 30 MB log costs what its first part costs."""
    # Room for what is asked for is made before the first byte is read, so no more is asked for than there is.
    window = min(limits.wanted_chars * MAX_BYTES_PER_CHAR + 4_096, data.stat().st_size)
    with data.open("rb") as file:
        raw = file.read(window)
        cut = bool(file.read(1))
    return decode(raw, cut=cut, declared=(served.charset,) if served else ())
