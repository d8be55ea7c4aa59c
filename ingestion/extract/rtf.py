"""RTF by a reader of its own: no library keeps headings, tables and notes, and Outlook's messages are RTF too."""

from pathlib import Path

from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.rtf_reader import RtfReader

MEDIA_TYPE = "application/rtf"
_FIELDS = {"title": "title", "author": "author", "subject": "subject", "keywords": "keywords", "doccomm": "description"}


class RtfExtractor:
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        reader = RtfReader(name=name, max_chars=limits.wanted_chars)
        cut = reader.read(data.read_bytes())
        metadata = {_FIELDS[key]: value[:2_000] for key, text in reader.tables.info.items() if (value := " ".join(text.split()))}
        return Extracted(
            markdown=reader.markdown,
            title=reader.title or metadata.get("title", "") or reader.first_heading or Path(name).stem,
            media_type=MEDIA_TYPE,
            metadata=metadata,
            truncated=cut,
            warnings=reader.warnings,
        )
