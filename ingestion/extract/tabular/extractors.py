"""The extractors of tabular files: what differs between them is their reader."""

from contextlib import closing
from pathlib import Path
from typing import ClassVar

from config.errors import ExtractionError
from ingestion.extract.base import Extracted, Limits, Served
from ingestion.extract.tabular.markdown import write_sheet
from ingestion.extract.tabular.readers import READERS


class _TabularExtractor:
    format: ClassVar[str]

    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        """One Markdown document of all sheets, each under its name."""
        reader = READERS.load(self.format)()
        parts: list[str] = []
        warnings: list[str] = []
        names: list[str] = []
        length = 0
        with closing(reader.sheets(data, name=name, limits=limits, shown=True)) as sheets:  # type: ignore[attr-defined]
            for number, sheet in enumerate(sheets):
                if number >= limits.max_pages:
                    warnings.append(f"Only the first {limits.max_pages} sheets were read.")
                    break
                text = write_sheet(sheet, limits=limits, chars=limits.wanted_chars - length)
                names += [sheet.name] if sheet.name else []
                warnings += text.warnings
                if text.markdown:
                    parts.append(text.markdown)
                    length += len(text.markdown) + 2
                if length >= limits.wanted_chars:
                    break
        if not parts and warnings:
            raise ExtractionError(f"{name} has no text within the limits. {' '.join(warnings)}", reason="empty", retires=True)
        return Extracted(
            markdown="\n\n".join(parts),
            title=Path(name).stem,
            media_type=reader.media_type,
            metadata={"sheets": names[:100]} if names else {},
            warnings=warnings,
        )


class CsvExtractor(_TabularExtractor):
    format = "csv"


class XlsxExtractor(_TabularExtractor):
    format = "xlsx"


class XlsExtractor(_TabularExtractor):
    format = "xls"


class OdsExtractor(_TabularExtractor):
    format = "ods"


class ParquetExtractor(_TabularExtractor):
    format = "parquet"
