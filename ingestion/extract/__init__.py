"""Files to Markdown. Pure: no models, no settings; runs in the children of sandbox.Sandbox."""

from ingestion.extract.base import Extracted, ExtractedFile, Extractor, Limits, PageSpan, Served
from ingestion.extract.extraction import extract, probe, probe_limits

__all__ = ["Extracted", "ExtractedFile", "Extractor", "Limits", "PageSpan", "Served", "extract", "probe", "probe_limits"]
