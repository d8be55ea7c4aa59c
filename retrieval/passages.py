"""From chunks that were found to hits as they are read: neighbours joined, the header of a cut table repeated, the document named."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q

from config.errors import LecternError
from kb import blobs
from kb.models import Blob, DatasetPart, Document
from retrieval.hits import DatasetReference, DocumentReference, Hit, Span, Twin, citation_of
from retrieval.hydration import Found, current_chunks
from retrieval.joining import Piece, Window, join_pieces, merge_windows
from retrieval.query import Query

log = logging.getLogger(__name__)

_NEIGHBOUR = ("id", "document_id", "ordinal", "start", "end", "text", "table_header")


def make_hits(query: Query, found: Sequence[Found]) -> list[Hit]:
    """Best first; hits of one document whose neighbours overlap become one, at the place and with the scores of the better."""
    windows = _windows(found)
    rows = _rows_of(query, found, windows)
    passages = []
    for document, window in windows:
        best = found[window.places[0]]
        members = [rows[document, ordinal] for ordinal in range(window.first, window.last + 1) if (document, ordinal) in rows]
        own = [row for row in members if row["id"] == best.row["id"]] or [best.row]
        passages.append((window.places[0], best, members or own))
    passages.sort(key=lambda passage: passage[0])
    headers = _headers([(best, members) for _, best, members in passages])
    datasets = _datasets(query, [best for _, best, _ in passages])
    twins = _twins(found, windows)
    return [
        _hit(best, members, headers.get(best.row["id"], ""), datasets.get(_place(best)), twins[place]) for place, best, members in passages
    ]


def _datasets(query: Query, found: Sequence[Found]) -> dict[tuple[UUID, int], DatasetReference]:
    """What a hit describes, by document and place; one statement where a document has any."""
    tables = [hit.row["document_id"] for hit in found if (hit.row["document__metadata"] or {}).get("datasets")]
    if not tables:
        return {}
    parts = DatasetPart.objects.filter(organization=query.organization, document__in=tables).select_related("dataset")
    return {(part.document_id, part.start): DatasetReference(part.dataset_id, part.dataset.name) for part in parts}


def _twins(found: Sequence[Found], windows: Sequence[tuple[UUID, Window]]) -> dict[int, tuple[Twin, ...]]:
    """By the place of the best hit of each window: what its hits have in other documents, a document once."""
    twins = {}
    for _, window in windows:
        rows = {twin.row["document_id"]: twin.row for place in reversed(window.places) for twin in found[place].twins}
        twins[window.places[0]] = tuple(
            Twin(citation_of(row["id"]), _document(row), tuple(row["heading_path"]), row["page_start"]) for row in rows.values()
        )
    return twins


def _place(hit: Found) -> tuple[UUID, int]:
    return hit.row["document_id"], hit.row["start"]


def _windows(found: Sequence[Found]) -> list[tuple[UUID, Window]]:
    by_document: dict[UUID, list[tuple[int, int, int]]] = defaultdict(list)
    for place, hit in enumerate(found):
        by_document[hit.row["document_id"]].append((place, hit.row["ordinal"], hit.target.neighbours))
    return [(document, window) for document, hits in by_document.items() for window in merge_windows(hits)]


def _rows_of(query: Query, found: Sequence[Found], windows: Sequence[tuple[UUID, Window]]) -> dict[tuple[UUID, int], dict]:
    """The chunks of all windows by document and ordinal; one statement, and none where nobody wants neighbours."""
    rows = {(hit.row["document_id"], hit.row["ordinal"]): hit.row for hit in found}
    wide = [(document, window) for document, window in windows if window.last > window.first]
    if wide:
        wanted = reduce(or_, (Q(document=document, ordinal__range=(window.first, window.last)) for document, window in wide))
        chunks = current_chunks(query)
        for row in chunks.filter(wanted).exclude(id__in=[hit.row["id"] for hit in found]).values(*_NEIGHBOUR):
            rows.setdefault((row["document_id"], row["ordinal"]), row)
    return rows


def _document(row: dict) -> DocumentReference:
    return DocumentReference(
        id=row["document_id"],
        title=row["document__title"] or row["document__key"].partition("\n")[0][:300],
        url=row["document__url"] or None,
        source_id=row["document__source_id"],
        knowledge_base_id=row["knowledge_base_id"],
        media_type=row["document__media_type"] or None,
        language=row["document__language"] or None,
        private=row["document__visibility"] == Document.Visibility.PRIVATE,
    )


def _hit(found: Found, members: Sequence[dict], header: str, dataset: DatasetReference | None, twins: tuple[Twin, ...]) -> Hit:
    row, candidate = found.row, found.candidate
    joined = join_pieces([Piece(member["start"], member["end"], member["text"]) for member in members])
    return Hit(
        citation=citation_of(row["id"]),
        chunk_id=row["id"],
        text=f"{header}\n{joined.text}" if header else joined.text,
        score=candidate.score,
        scores=candidate.scores,
        document=_document(row),
        heading_path=tuple(row["heading_path"]),
        page=row["page_start"],
        page_end=row["page_end"],
        span=Span(joined.start, joined.end),
        match=Span(row["start"], row["end"]),
        chunks=len(members),
        header_length=len(header) + 1 if header else 0,
        metadata=row["document__metadata"] or {},
        dataset=dataset,
        also_in=twins,
    )


def _headers(passages: Iterable[tuple[Found, Sequence[dict]]]) -> dict[int, str]:
    """The table header of each passage that begins inside a table, by the id of its best chunk. Read from the stored Markdown."""
    wanted: dict[int, tuple[UUID, int, int]] = {}
    for found, members in passages:
        first = min(members, key=lambda member: member["start"])
        header = first["table_header"]
        if header and header[1] <= first["start"] and found.row["document__markdown_id"]:
            wanted[found.row["id"]] = (found.row["document__markdown_id"], *header)
    if not wanted:
        return {}
    texts: dict[UUID, str] = {}
    for blob in Blob.objects.filter(id__in={blob for blob, _, _ in wanted.values()}):
        try:
            texts[blob.id] = blobs.read_text(blob)
        except LecternError:
            # A passage without its header is still an answer.
            log.warning("The stored Markdown %s could not be read for the header of a table.", blob.id)
    return {chunk: texts[blob][start:end].strip("\n") for chunk, (blob, start, end) in wanted.items() if blob in texts}
