"""Points in a store over a network: written before the transaction that publishes their chunks, noted before that, removed after it.

A crash in between leaves points without chunks, which no search shows and which the outbox takes away (`kb.store_removals`). The numbers
of the chunks are drawn beforehand, so that a point and its chunk have one number.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from uuid_utils.compat import uuid7

from ingestion.generations import Difference, Generation, compare
from ingestion.models import EmbeddedText, IngestionRun
from ingestion.models.embedded_texts import unpack_vector
from kb import store_removals, vector_stores
from kb.models import Document, KnowledgeBase
from kb.stores.base import Place, Point

Key = tuple[UUID, bytes]


@dataclass(slots=True)
class Placement:
    """Numbers of chunks whose points stand, by document and hash of the text; each is taken once. `reserved` are the ids of documents that
    are made with the publication, by item."""

    place: Place
    store: Mapping[str, Any]
    reserved: dict[int, UUID]
    staged: int | None = None
    free: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))

    def lacking(self, difference: Difference) -> set[UUID]:
        """Documents with a new passage that has no point: they changed between the look at them and the transaction."""
        wanted: dict[Key, int] = defaultdict(int)
        for document, _, passage in difference.new:
            wanted[document.id, passage.text_hash] += 1
        return {document for (document, digest), count in wanted.items() if len(self.free.get((document, digest), ())) < count}

    def take(self, document: Document, text_hash: bytes) -> int:
        return self.free[document.id, text_hash].pop(0)

    def settle(self) -> None:
        """In the transaction, when all were taken that are."""
        if self.staged is not None:
            unused = [chunk for chunks in self.free.values() for chunk in chunks]
            store_removals.settle(self.staged, self.place, self.store, unused=unused)


def place_points(run: IngestionRun, generations: Sequence[Generation]) -> Placement | None:
    """Write the points of what will be new; None where vectors are written with the chunks. Raises StoreUnavailable and StoreRefused."""
    if run.version is None or not vector_stores.is_external(vector_stores.store_in(run.version)):
        return None
    knowledge_base = KnowledgeBase.objects.select_related("current").get(id=run.knowledge_base_id)
    # As it is published now: its keys may have been exchanged since the run began. It does not move while a run is under way.
    store = vector_stores.store_in(knowledge_base.current)
    documents, reserved = _documents(run, generations)
    placement = Placement(Place(run.organization_id, run.knowledge_base_id, run.space), store, reserved)
    difference = compare([(documents[g.item.id], g) for g in generations if g.item.id in documents], space=run.space_id)
    paid = paid_vectors(run, {passage.text_hash for _, _, passage in difference.new})
    new = [(document, passage.text_hash) for document, _, passage in difference.new if passage.text_hash in paid]
    if not new:
        return placement
    chunks = store_removals.draw_chunk_ids(len(new))
    placement.staged = store_removals.stage(placement.place, store, chunks)
    points = [
        Point(chunk, document.id, paid[digest], generation=document.generation + 1)
        for chunk, (document, digest) in zip(chunks, new, strict=True)
    ]
    vector_stores.open_for(run.organization_id, store).add(placement.place, points)
    for chunk, (document, digest) in zip(chunks, new, strict=True):
        placement.free[document.id, digest].append(chunk)
    return placement


def _documents(run: IngestionRun, generations: Sequence[Generation]) -> tuple[dict[int, Document], dict[int, UUID]]:
    """By item, as they stand now and without locks; those that the publication will make, and their ids, too."""
    named = Document.objects.in_bulk([g.item.document_id for g in generations if g.item.document_id])
    unnamed = [g.item for g in generations if not g.item.document_id]
    rows = Document.objects.filter(source=run.source, key_hash__in=[bytes(item.key_hash) for item in unnamed]) if unnamed else []
    known = {bytes(document.key_hash): document for document in rows}
    found = {g.item.id: named[g.item.document_id] for g in generations if g.item.document_id in named}
    reserved: dict[int, UUID] = {}
    for item in unnamed:
        document = known.get(bytes(item.key_hash))
        if document is None:
            reserved[item.id] = uuid7()
            document = Document(id=reserved[item.id])
        found[item.id] = document
    return found, reserved


def paid_vectors(run: IngestionRun, hashes: set[bytes]) -> dict[bytes, np.ndarray]:
    scope = {"organization_id": run.organization_id, "space_id": run.space_id}
    rows = EmbeddedText.objects.filter(**scope, text_hash__in=hashes, vector__isnull=False)
    return {bytes(digest): unpack_vector(vector) for digest, vector in rows.values_list("text_hash", "vector")}
