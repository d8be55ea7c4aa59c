"""Where a knowledge base's documents come from: an entry of `sources[]`."""

from typing import Literal
from uuid import UUID

from pydantic import Field, ValidationInfo, field_validator

from kb.schemas.base import BIGGEST_INTEGER, Document, Name, Text, rules_of
from kb.schemas.cron import check_cron
from kb.schemas.web import Web

MIB = 1024 * 1024
MAX_FILE_CONTENT_LENGTH = 2_000_000  # a page is short or a trap, a file is a book


class Upload(Document):
    """Limits of an upload source: files that people put there and Lectern keeps."""

    max_files: int = Field(default=500, ge=1, le=10_000, description="Files kept; replacing one is always possible.")
    max_file_bytes: int = Field(default=25 * MIB, ge=1, le=50 * MIB, description="Bytes of one file (25 MiB; at most 50 MiB).")
    max_total_bytes: int = Field(
        default=500 * MIB,
        ge=1,
        le=20 * 1024 * MIB,
        description="Bytes of all files together (500 MiB; at most 20 GiB), at least `max_file_bytes`.",
    )

    @field_validator("max_total_bytes")
    @classmethod
    def _holds_one_file(cls, total: int, info: ValidationInfo) -> int:
        one = info.data.get("max_file_bytes")
        if one is not None and total < one:
            raise ValueError(f"is {total}, less than max_file_bytes ({one}): a file of the allowed size would not fit. Raise it.")
        return total


class SourceSettings(Document):
    """Limits of a run and of its documents."""

    max_content_length: int = Field(
        default=100_000,
        ge=1,
        le=BIGGEST_INTEGER,
        description="Characters kept of one document (of files 2,000,000); a longer one is cut, and marked so.",
    )
    max_bytes_per_page: int = Field(default=5 * MIB, ge=1, le=BIGGEST_INTEGER, description="Bytes read of one response (5 MiB).")
    comments: bool = Field(
        default=False, description="Whether what reviewers noted beside the text of Word, OpenDocument and PowerPoint files is read, too."
    )
    max_segments_per_run: int = Field(default=20_000, ge=1, le=BIGGEST_INTEGER, description="Chunks embedded per run: the cap on its cost.")
    cost_per_thousand_segments: float | None = Field(default=None, ge=0, description="Only used to report a run's cost.")
    ocr: Literal["auto", "off"] = Field(
        default="auto", description="`auto` recognizes text in pictures and scanned pages, `off` refuses files that have no other."
    )
    tombstone_after_missed_runs: int = Field(
        default=2, ge=1, le=1000, description="Complete runs in a row that must miss a document before it is removed."
    )
    max_deletion_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="A run that would remove more than this share of the source's documents (and more than 10) removes nothing, ends "
        "`needs_confirmation`, and an editor confirms or rejects.",
    )
    tables: Literal["auto", "text", "tabular"] = Field(
        default="auto",
        description="`auto` makes datasets of CSV, TSV, Parquet and sheets with a header and 20 rows; `text` reads them as text; `tabular` "
        "makes a dataset of every table and refuses files without one.",
    )
    time_budget_minutes: int = Field(default=10, ge=1, le=1440, description="Minutes of crawling or listing worked per run.")


class Source(Document):
    """One source. Its `id` is its identity: a renamed source keeps its documents."""

    id: Text | None = Field(
        default=None, description="Made by the server and fixed. Leave it out for a new source; an unknown id is refused."
    )
    name: Name = Field(description="1–200 characters, unique in the knowledge base (capitals do not count).")
    type: Literal["web", "upload"] = Field(default="web", description="`web` crawls a site, `upload` holds files.")
    enabled: bool = Field(default=True, description="A disabled source keeps documents and history, but has no schedule and cannot be run.")
    cron: Text | None = Field(
        default=None,
        description="When it runs: five fields, read in UTC, at least LECTERN_MIN_SCHEDULE_INTERVAL (60 s) apart. A day must match "
        "both day fields. None: only by hand.",
    )
    web: Web | None = Field(default=None, description="What to crawl: required for type web, refused for type upload.")
    upload: Upload | None = Field(default=None, description="Limits of an upload source: refused for type web.")
    settings: SourceSettings = Field(
        default_factory=SourceSettings, validate_default=True, description="Limits of a run and of its documents."
    )

    @field_validator("id")
    @classmethod
    def _id(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            return str(UUID(value))  # with or without dashes it is one id
        except ValueError:
            raise ValueError("is not the id of a source. Leave it out for a new source.") from None

    @field_validator("cron")
    @classmethod
    def _cron(cls, value: str | None, info: ValidationInfo) -> str | None:
        rules = rules_of(info)
        if value is None or not rules.strict:
            return value
        return check_cron(value, min_interval_seconds=rules.min_interval_seconds)

    @field_validator("web")
    @classmethod
    def _web_block(cls, value: Web | None, info: ValidationInfo) -> Web | None:
        kind = info.data.get("type")
        if kind == "web" and value is None:
            raise ValueError("is required for a source of type web: write at least web.start_url.")
        if kind == "upload" and value is not None:
            raise ValueError("does not belong to a source of type upload: remove it, or make the type web.")
        return value

    @field_validator("settings")
    @classmethod
    def _of_files(cls, value: SourceSettings, info: ValidationInfo) -> SourceSettings:
        if info.data.get("type") != "upload" or "max_content_length" in value.model_fields_set:
            return value
        return value.model_copy(update={"max_content_length": MAX_FILE_CONTENT_LENGTH})

    @field_validator("upload")
    @classmethod
    def _upload_block(cls, value: Upload | None, info: ValidationInfo) -> Upload | None:
        kind = info.data.get("type")
        if kind == "web" and value is not None:
            raise ValueError("does not belong to a source of type web: remove it, or make the type upload.")
        return Upload() if kind == "upload" and value is None else value
