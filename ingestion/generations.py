"""The next generation of a document: its passages with everything that can be computed before the transaction."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from ingestion.models import RunItem
from ingestion.reading import with_context
from kb import blobs
from kb.models import Chunk, Document
from kb.stores.words import WordRow
from kb.words.analysis import document_terms, written_words
from kb.words.hashing import hash_counts, hash_written


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of the new generation, with the hash of its embedded text and its words."""

    ordinal: int
    start: int
    end: int
    heading_path: list[str]
    tokens: int
    table_header: list[int] | None
    context: str
    text: str
    text_hash: bytes
    pages: tuple[int | None, int | None]
    counts: dict[int, int]
    length: int
    written: frozenset[tuple[str, int]]

    def words(self, chunk: int) -> WordRow:
        return WordRow(chunk, self.counts, self.length, self.written)


@dataclass(frozen=True, slots=True)
class Generation:
    """What an item will make of its document."""

    item: RunItem
    passages: list[Passage]
    language: str


@dataclass(slots=True)
class Difference:
    """Chunks that stay (and may move), come and go."""

    kept: list[tuple[int, Passage]] = field(default_factory=list)
    new: list[tuple[Document, str, Passage]] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)


def prepare(item: RunItem, *, configured_language: str) -> Generation:
    """Read the item's Markdown and analyse its passages."""
    markdown = blobs.read_text(item.markdown)
    language = (item.extracted.get("language") or "") if configured_language == "auto" else configured_language
    spans = [(span["page"], span["start"], span["end"]) for span in item.extracted.get("pages", [])]
    passages = []
    for ordinal, ((start, end, path, tokens, header, context), digest) in enumerate(zip(item.passages, item.text_hashes, strict=True)):
        text = markdown[start:end]
        said = with_context(context, text)
        counts, length = document_terms(said, language)
        passages.append(
            Passage(
                ordinal=ordinal,
                start=start,
                end=end,
                heading_path=path,
                tokens=tokens,
                table_header=header,
                context=context,
                text=text,
                text_hash=bytes(digest),
                pages=_pages(spans, start, end),
                counts=hash_counts(counts),
                length=length,
                written=hash_written(written_words(said, language)),
            )
        )
    return Generation(item, passages, language)


def _pages(spans: Sequence[tuple[int, int, int]], start: int, end: int) -> tuple[int | None, int | None]:
    touched = [page for page, first, last in spans if first < end and last > start]
    return (touched[0], touched[-1]) if touched else (None, None)


def compare(pairs: Sequence[tuple[Document, Generation]], *, space: int) -> Difference:
    """Match old and new chunks of each document by (text hash, occurrence); equal ones keep their ids.

    A document that changes its space or language keeps none: vectors and words of every chunk are made anew.
    """
    old: dict[UUID, dict[bytes, list[int]]] = defaultdict(lambda: defaultdict(list))
    rows = Chunk.objects.filter(document_id__in=[document.id for document, _ in pairs if document.chunk_count]).order_by("ordinal")
    for chunk, document_id, digest in rows.values_list("id", "document_id", "text_hash"):
        old[document_id][bytes(digest)].append(chunk)
    found = Difference()
    for document, generation in pairs:
        free = old[document.id]
        may_keep = document.space_id == space and document.language == generation.language
        for passage in generation.passages:
            same = free.get(passage.text_hash) if may_keep else None
            if same:
                found.kept.append((same.pop(0), passage))
            else:
                found.new.append((document, generation.language, passage))
        found.gone += [chunk for chunks in free.values() for chunk in chunks]
    return found
