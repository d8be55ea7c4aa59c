"""The admin of what goes in: sources with their files, runs with their verdicts, and what the fleet writes about itself."""

from ingestion.admin import records, runs, sources

__all__ = ["records", "runs", "sources"]
