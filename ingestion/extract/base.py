"""What goes into an extractor and what comes out. Everything here crosses a pipe as JSON, so it stays plain."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self

MEBIBYTE = 1024 * 1024
# Stored with each document. Raise it when some format is read better than before: then it can be told what to read again.
EXTRACTOR_VERSION = "1"
# What a child is started with that shall not load the language model.
WITHOUT_LANGUAGES = "--without-languages"
# What it may run besides, followed by the path.
PROGRAM = "--program="


@dataclass(frozen=True, slots=True)
class Limits:
    """Counted limits refuse or cut the content; seconds and memory are also enforced from outside by the sandbox."""

    max_chars: int = 100_000
    max_pages: int = 500
    max_rows: int = 5_000
    max_columns: int = 64
    """Of a table as Markdown; what is made of its rows besides is bounded by bytes."""
    max_seconds: float = 60.0
    max_memory_mb: int = 512
    max_stream_bytes: int = 64 * MEBIBYTE
    max_decoded_bytes: int = 128 * MEBIBYTE
    max_archive_bytes: int = 64 * MEBIBYTE
    max_output_bytes: int = 0
    stop_after_chars: int | None = None
    comments: bool = False
    """Whether what reviewers noted beside the text of an office document is text, too."""
    ocr: str = "missing"
    """`auto`: pictures and scanned pages come back as parts to be recognized; `described`: pictures alone, for a model that describes them.
    Else they are refused: `off` by setting, `missing` for want of an engine."""
    speech: str = "missing"
    """The same for recordings: `auto` or `missing`."""

    @property
    def wanted_chars(self) -> int:
        """Where reading may stop: a probe needs only enough to know that there is text."""
        return self.max_chars if self.stop_after_chars is None else min(self.max_chars, self.stop_after_chars)


@dataclass(frozen=True, slots=True)
class Served:
    """How a web server gave the content: its address, the charset of Content-Type and the value of X-Robots-Tag; "" where it said none.
    `agent` is the product token that we asked under: robots rules may name it."""

    url: str
    charset: str = ""
    robots_header: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class PageSpan:
    """markdown[start:end] came from this page; pages count from 1, as a reader's viewer does."""

    page: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ExtractedFile:
    """A file that came out of the one that was read. `path` is its file name in the outbox: the extractor's choice, and no stranger's;
    `name` is what people know it by. One that was not written has no path; its details say why (`reason`, `error`)."""

    name: str
    path: str
    media_type: str
    kind: Literal["attachment", "dataset", "segment"]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file that is read by itself, because recognizing it takes seconds: a `page` of a PDF, a `picture` or the `description`
    of one (both count frames as pages), a stretch of `speech` from `start` to `end` seconds. `text` is what was read of it already,
    as Markdown; None says that it has to be recognized."""

    kind: str
    page: int | None = None
    start: float | None = None
    end: float | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Extracted:
    markdown: str
    title: str
    media_type: str
    language: str | None = None
    pages: list[PageSpan] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    truncated: bool = False
    warnings: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    """In reading order, of a file that has some to be recognized; its Markdown and pages are then made of them."""
    page: dict[str, Any] | None = None
    """What a crawl needs of HTML that a server gave: html_page.describe_page. Such a page may have no Markdown: its links still count."""
    files: list[ExtractedFile] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        pages, parts = [PageSpan(**span) for span in value["pages"]], [Part(**part) for part in value.get("parts", ())]
        files = [ExtractedFile(**file) for file in value.get("files", ())]
        return cls(**{**value, "pages": pages, "parts": parts, "files": files})


class Extractor(Protocol):
    def extract(self, data: Path, *, name: str, limits: Limits, served: Served | None = None) -> Extracted:
        """The file as Markdown. May return more than `limits.max_chars`; the caller cuts. Raises ExtractionError.

        One that makes files of it takes `outbox: Path | None = None` besides: a folder for `limits.max_output_bytes` in all, or None where
        nobody wants them. It names what it wrote in `Extracted.files`."""
        ...
