"""Files, documents, chunks, vectors, words and stored bytes against each other: what does not agree, and what would mend it.

Everything here reads; only a finding's `repair` writes. What others are working on now is left out by age: an upload, a run and the
collector all write a file before its row, and remove a row before its file.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from django.db import connection, transaction
from django.db.models import Count, F, Q
from django.utils import timezone

from kb import blobs, stored, vector_stores
from kb.models import Blob, Document, EmbeddingSpace, File, KnowledgeBase, Organization, Upload
from kb.space_changes import live_spaces
from kb.store_drift import compare_store, remove_points
from kb.stores.drift import drift, remove_orphans
from kb.stores.vectors import remove_vectors

# What a run, an upload or the collector is in the middle of is no drift.
SETTLED_AFTER = timedelta(hours=24)
EXAMPLES = 5
_NO_REPAIR = "Restore them from a backup, or upload the files again."


def _nothing() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Finding:
    """`count` things that do not agree. `remedy` says what `repair` does; it returns how many rows or files it changed."""

    kind: str
    count: int
    remedy: str
    examples: tuple[str, ...] = ()
    repair: Callable[[], int] = field(default=_nothing, compare=False)
    knowledge_base: str = ""
    is_repairable: bool = True


def find_drift(*, organization: Organization | None = None, contents: bool = False) -> Iterator[Finding]:
    """Everything that does not agree, of one organization or of all. With `contents` every stored file is read and its hash checked.
    Raises `Unavailable` where the storage does not answer."""
    organizations = Organization.objects.filter(state=Organization.State.ACTIVE)
    chosen = [organization] if organization else list(organizations.order_by("created_at"))
    for each in chosen:
        rows = (
            KnowledgeBase.objects.filter(organization=each, state=KnowledgeBase.State.ACTIVE).select_related("space").order_by("created_at")
        )
        for knowledge_base in rows:
            yield from _of_knowledge_base(knowledge_base)
        yield from _of_stored(each, contents=contents)
    if organization is None:
        yield from _of_storage()


def _of_knowledge_base(knowledge_base: KnowledgeBase) -> Iterator[Finding]:
    named = partial(Finding, knowledge_base=str(knowledge_base.id))
    stores = vector_stores.stores_of(knowledge_base)
    found = drift(knowledge_base, vectors_are_here=not stores)
    orphans = {"orphan_vectors": found.orphan_vectors, "orphan_words": found.orphan_words}
    clear = partial(remove_orphans, knowledge_base)
    for kind, count in orphans.items():
        if count:
            yield named(kind, count, f"removes the {count} rows whose chunk is gone", repair=clear)
    again = partial(_read_again, knowledge_base)
    for kind, count in {"missing_vectors": found.missing_vectors, "missing_words": found.missing_words}.items():
        if count:
            yield named(kind, count, "marks the documents of the knowledge base, so that their next run makes them again", repair=again)
    yield from _left_spaces(knowledge_base, named)
    for space, store in stores.items():
        outside = compare_store(knowledge_base, space=space, store=store)
        if count := len(outside.orphans):
            remove = partial(remove_points, knowledge_base, space=space, store=store, chunks=outside.orphans)
            yield named("orphan_points", count, f"removes the {count} points whose chunk is gone", repair=remove)
        if outside.missing and space == knowledge_base.space_id:
            remedy = "marks the documents of the knowledge base, so that their next run makes them again"
            yield named("missing_points", outside.missing, remedy, repair=again)
    documents = Document.objects.filter(knowledge_base=knowledge_base)
    counted = documents.annotate(there=Count("chunks")).exclude(chunk_count=F("there"))
    if wrong := list(counted.values_list("id", "there")):
        yield named(
            "chunk_counts", len(wrong), "writes how many chunks there are", _few(i for i, _ in wrong), partial(_recount, dict(wrong))
        )
    without = documents.filter(markdown=None, chunks__isnull=False).distinct()
    if textless := list(without.values_list("id", flat=True)):
        remedy = "marks the documents, so that their next run reads them again"
        yield named("chunks_without_text", len(textless), remedy, _few(textless), partial(_forget, textless))


def _left_spaces(knowledge_base: KnowledgeBase, named: Callable[..., Finding]) -> Iterator[Finding]:
    """Vectors of a model that the knowledge base left, that nobody goes back to, and that none of its documents is published in."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT space FROM embedding_use WHERE kb = %s", [knowledge_base.id])
        used = {row[0] for row in cursor.fetchall()}
    living = set(Document.objects.filter(knowledge_base=knowledge_base, space__isnull=False).values_list("space_id", flat=True))
    for space in EmbeddingSpace.objects.filter(id__in=used - living - live_spaces(knowledge_base)):
        remedy = f"removes the vectors of {space} that no document is published with"
        yield named("left_vectors", 1, remedy, (str(space.pk),), partial(_remove_vectors, knowledge_base, space))


def _of_stored(organization: Organization, *, contents: bool) -> Iterator[Finding]:
    """Rows of stored bytes whose bytes are not there, or are others."""
    bad: list[Blob] = []
    for blob in Blob.objects.filter(organization=organization).order_by("id").iterator(chunk_size=1000):
        if not (blobs.is_whole(blob) if contents else blobs.is_there(blob)):
            bad.append(blob)
    if not bad:
        return
    files = File.objects.filter(blob__in=bad)
    if lost := list(files.values_list("name", flat=True)):
        yield Finding("lost_files", len(lost), _NO_REPAIR, examples=_few(lost), is_repairable=False)
    # What was made of files can be made again. The text of a plain file may be the file itself.
    made = [blob.id for blob in bad if blob.id not in set(files.values_list("blob_id", flat=True))]
    documents = Document.objects.filter(Q(markdown__in=made) | Q(dataset_parts__blob__in=made)).distinct()
    if damaged := list(documents.values_list("id", flat=True)):
        remedy = "marks the documents, so that their next run makes their text and tables again"
        yield Finding("lost_texts", len(damaged), remedy, examples=_few(damaged), repair=partial(_make_again, made, damaged))


def _of_storage() -> Iterator[Finding]:
    """Files of the storage that no row names."""
    before = timezone.now() - SETTLED_AFTER
    unnamed = [key for keys in stored.keys_older_than(before) for key in _unnamed(keys)]
    if unnamed:
        yield Finding(
            "unnamed_files", len(unnamed), f"deletes the {len(unnamed)} files", _few(unnamed), repair=partial(_delete_files, unnamed)
        )


def _unnamed(keys: list[str]) -> list[str]:
    named = set(Blob.objects.filter(storage_key__in=keys).values_list("storage_key", flat=True))
    for parts in Upload.objects.filter(parts__overlap=keys).values_list("parts", flat=True):
        named.update(parts)
    return [key for key in keys if key not in named]


def _few(things: object) -> tuple[str, ...]:
    return tuple(str(thing) for thing, _ in zip(things, range(EXAMPLES), strict=False))  # type: ignore[call-overload]


def _read_again(knowledge_base: KnowledgeBase) -> int:
    return _forget(list(Document.objects.filter(knowledge_base=knowledge_base, tombstoned_at=None).values_list("id", flat=True)))


def _forget(documents: list[object]) -> int:
    """As a purge does: chunks answer until the next run makes them again. Without a space their vectors are written anew."""
    return Document.objects.filter(id__in=documents).update(
        content_hash=None, extract_fingerprint="", chunk_fingerprint="", context_fingerprint="", etag="", last_modified="", space=None
    )


def _make_again(lost: list[object], documents: list[object]) -> int:
    blobs.set_aside(lost)
    return _forget(documents)


def _recount(counts: dict[object, int]) -> int:
    with transaction.atomic():
        for document in Document.objects.select_for_update(no_key=True).filter(id__in=counts).order_by("id"):
            Document.objects.filter(id=document.id).update(chunk_count=document.chunks.count())
    return len(counts)


def _remove_vectors(knowledge_base: KnowledgeBase, space: EmbeddingSpace) -> int:
    removed = 0
    while batch := remove_vectors(organization=knowledge_base.organization_id, space=space, knowledge_base=knowledge_base.id):
        removed += batch
    return removed


def _delete_files(keys: list[str]) -> int:
    """Looked up again: one that got its row meanwhile stays."""
    still = _unnamed(keys)
    stored.delete(still)
    return len(still)
