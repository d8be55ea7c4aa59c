"""How far a file has come. Derived from what the stages wrote, never stored: of the document, its open item, and which version answers."""

from enum import StrEnum

from django.db.models import Case, CharField, Exists, F, OuterRef, Q, QuerySet, Value, When

from config.errors import NotFound
from ingestion.failures import is_retryable
from ingestion.models import RunItem
from ingestion.services.documents import State, is_untouched
from kb.models import DatasetPart, Document, File

INTERRUPTED = "Its processing was stopped before it ended. Try it again."


class Status(StrEnum):
    """Of a file, in a channel and in an upload source alike."""

    PENDING = "pending"  # kept, and waits to be read
    PROCESSING = "processing"
    INDEXED = "indexed"  # its chunks or rows answer
    STORED = "stored"  # kept and not made to answer, as its policy says
    FAILED = "failed"  # the reason is with it; an earlier version may answer
    SUPERSEDED = "superseded"  # a newer version took its place


def _open_items(**document: str) -> tuple[Exists, Exists]:
    """(whether an open item of the document's last run is under way, whether one is at all)."""
    items = RunItem.objects.filter(run_id=OuterRef(document["run"]), key_hash=OuterRef(document["key"]), run__finished_at=None)
    items = items.exclude(stage=RunItem.Stage.DONE)
    return Exists(items.exclude(is_untouched)), Exists(items)


def with_status(files: QuerySet[File]) -> QuerySet[File]:
    """Versions of files of channels, each with `status`."""
    worked, waits = _open_items(run="resource__last_run_id", key="resource__key_hash")
    answers = Q(resource__answering=F("id"))
    # Rows of a dataset that several files have are described by one of them: the others answer without chunks.
    is_found = Q(resource__chunk_count__gt=0) | Exists(DatasetPart.objects.filter(document=OuterRef("resource")))
    searchable = Case(When(is_found, then=Value(Status.INDEXED)), default=Value(Status.STORED))
    status = Case(
        When(~Q(resource__file=F("id")) & answers, then=searchable),
        When(~Q(resource__file=F("id")), then=Value(Status.SUPERSEDED)),
        When(worked, then=Value(Status.PROCESSING)),
        When(waits, then=Value(Status.PENDING)),
        When(~Q(resource__last_error=""), then=Value(Status.FAILED)),
        When(answers, then=searchable),
        default=Value(Status.FAILED),  # its run was ended from outside
        output_field=CharField(),
    )
    return files.annotate(status=status)


def status_of(file: File) -> str:
    """The status of one version. `NotFound` if it went meanwhile."""
    found = with_status(File.objects.filter(id=file.id)).values_list("status", flat=True).first()
    if found is None:
        raise NotFound()
    return found


def failure_of(file: File) -> tuple[str, str, bool]:
    """(code, sentence, whether trying again may help) of a file in status `failed`."""
    document = file.resource
    if document.last_error:
        return document.last_reason, document.last_error, is_retryable(document.last_reason)
    # Its run was ended from outside, or at a limit: what its item says, while that is kept.
    item = RunItem.objects.filter(run_id=document.last_run_id, key_hash=bytes(document.key_hash)).only("reason", "error").first()
    reason = (item.reason if item else "") or "interrupted"
    return reason, (item.error if item else "") or INTERRUPTED, True


def source_status(document: Document) -> Status:
    """Of a file of an upload source, from its `state` and `is_worked` (services.documents): the same words, no second truth."""
    if document.is_worked:
        return Status.PROCESSING
    if document.state == State.FAILED:
        return Status.FAILED
    return {State.INDEXED: Status.INDEXED, State.STORED: Status.STORED}.get(State(document.state), Status.PENDING)
