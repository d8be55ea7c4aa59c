"""Tabular files, whatever their format: `read_sheets` gives typed rows, the extractors write bounded Markdown."""

from ingestion.extract.tabular.base import HeaderKind, Sheet, Value
from ingestion.extract.tabular.readers import TABULAR_FORMATS, read_sheets

__all__ = ["TABULAR_FORMATS", "HeaderKind", "Sheet", "Value", "read_sheets"]
