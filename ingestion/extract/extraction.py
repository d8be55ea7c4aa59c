"""One file to Markdown, whatever its format, under the limits. Runs in the sandbox's child: nothing here stops a hostile file."""

import hashlib
from dataclasses import replace
from functools import cache
from inspect import signature
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from config.errors import ExtractionError
from ingestion.datasets.wanted import Wanted
from ingestion.extract.base import Extracted, Extractor, Limits, PageSpan, Served
from ingestion.extract.encodings import clean
from ingestion.extract.formats import EXTRACTORS, MINIMUM_CHARS
from ingestion.extract.language import detect_language
from ingestion.extract.sniff import sniff
from ingestion.extract.tabular import TABULAR_FORMATS

PROBE_CHARS = 64
PROBE_SECONDS = 10.0
# A cut looks for a line end, then a space, no further back than this.
CUT_SEARCHED_CHARS = 400
# Who reads this owns the source, seldom the site.
ADVICE_FOR_SITES = "Leave its address out with exclude_patterns if it is not wanted."


def extract(
    path: Path,
    *,
    name: str,
    declared_type: str | None,
    limits: Limits,
    served: Served | None = None,
    outbox: Path | None = None,
    tables: Wanted | None = None,
) -> Extracted:
    """Raises ExtractionError with the reason as a sentence; any other exception is a defect of the extractor.
    HTML that was `served` comes back without an error when it has no text: `page` says why, and holds its links.
    `outbox` is a folder for the files that are made of it (attachments, datasets), where those are wanted; `tables` is given where tables
    shall become datasets, whose descriptions then stand for their rows."""
    if served is not None:
        name = _file_name(served.url) or name
    try:
        kind = sniff(path, name=name, declared_type=declared_type, served=served is not None)
        extracted = _datasets(path, kind.format, name=name, limits=limits, outbox=outbox, tables=tables)
        if extracted is None:
            extractor = EXTRACTORS.load(kind.format)
            more = {"outbox": outbox} if _writes(extractor) else {}
            extracted = extractor().extract(path, name=name, limits=limits, served=served, **more)
        return _finished(extracted, format=kind.format, name=name, limits=limits)
    except ExtractionError as error:
        if served is None:
            raise
        raise ExtractionError(error.happened, advice=ADVICE_FOR_SITES, reason=error.reason, retires=error.retires) from error


def _datasets(path: Path, format: str, *, name: str, limits: Limits, outbox: Path | None, tables: Wanted | None) -> Extracted | None:
    if tables is None or outbox is None:
        return None
    # DuckDB is large: it is imported with the first table.
    from ingestion.datasets.tables import no_table, read_tables

    if format in TABULAR_FORMATS:
        return read_tables(path, format=format, name=name, wanted=tables, limits=limits, outbox=outbox)
    if tables.mode == "tabular":
        raise no_table(name)
    return None


@cache
def _writes(extractor: type[Extractor]) -> bool:
    return "outbox" in signature(extractor.extract).parameters


def content_hash(title: str, markdown: str) -> bytes:
    """What a page is compared by: its text as it was read, so that a nonce or a clock in the page's frame is no change."""
    return hashlib.sha256(f"{title}\n{markdown}".encode()).digest()


def probe_limits(limits: Limits) -> Limits:
    """The same extraction, stopped as soon as there is known to be text: for the answer to an upload."""
    return replace(limits, stop_after_chars=PROBE_CHARS, max_seconds=min(limits.max_seconds, PROBE_SECONDS))


def probe(path: Path, *, name: str, declared_type: str | None = None, limits: Limits | None = None) -> Extracted:
    return extract(path, name=name, declared_type=declared_type, limits=probe_limits(limits or Limits()))


def _finished(extracted: Extracted, *, format: str, name: str, limits: Limits) -> Extracted:
    if any(part.text is None for part in extracted.parts):
        return replace(extracted, markdown="", title=_title(extracted, name), pages=[])
    markdown = extracted.markdown
    warnings = list(extracted.warnings)
    if not extracted.pages:
        # Page spans count characters, so a format that makes them cleans its own text.
        markdown, more = clean(markdown)
        warnings += more
    minimum = MINIMUM_CHARS.get(format, 1)
    if len(markdown.strip()) < minimum or not has_visible(markdown):
        if extracted.page is not None:
            return replace(extracted, markdown="", title=_title(extracted, name), truncated=False, warnings=warnings)
        raise _empty(markdown, name=name, minimum=minimum)
    truncated = extracted.truncated
    if len(markdown) > limits.max_chars:
        markdown = cut_text(markdown, limit=limits.max_chars)
        truncated = True
    if truncated and limits.stop_after_chars is None:
        kept = f"Only the first {len(markdown):,} characters were kept."
        warnings.append(f"{kept} Raise the limit of characters per document, or split the file.")
    return replace(
        extracted,
        markdown=markdown,
        title=_title(extracted, name),
        language=extracted.language or detect_language(markdown),
        pages=[PageSpan(span.page, span.start, min(span.end, len(markdown))) for span in extracted.pages if span.start < len(markdown)],
        truncated=truncated,
        warnings=warnings,
    )


def _empty(markdown: str, *, name: str, minimum: int) -> ExtractionError:
    found = len(markdown.strip()) if has_visible(markdown) else 0
    happened = f"{name} holds too little text to search in: {found} characters, at least {minimum} are needed."
    if not found:
        happened = f"{name} holds no text to search in."
    return ExtractionError(
        happened, advice="Upload a file with text." if not found else "Upload a file with more.", reason="empty", retires=True
    )


def _title(extracted: Extracted, name: str) -> str:
    return " ".join(clean(extracted.title)[0].split())[:300] or name


def _file_name(url: str) -> str:
    """The last part of the address's path; "" where it ends with a slash."""
    return PurePosixPath(unquote(urlsplit(url).path, errors="replace")).name[:255]


def has_visible(text: str) -> bool:
    return any(char.isprintable() and not char.isspace() for char in text)


def cut_text(text: str, *, limit: int) -> str:
    """Not in the middle of a line or word, if one of them ends near the limit."""
    head = text[:limit]
    floor = max(0, limit - CUT_SEARCHED_CHARS)
    for mark in ("\n", " "):
        end = head.rfind(mark, floor)
        if end > 0:
            return head[:end].rstrip()
    return head
