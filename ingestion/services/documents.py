"""How the documents of a knowledge base stand: one definition, in SQL, so that lists can be filtered by it."""

from enum import StrEnum
from uuid import UUID

from django.db.models import Case, CharField, Exists, F, OuterRef, Q, QuerySet, Value, When

from config.errors import InvalidInput, NotFound
from ingestion.models import IngestionRun, RunItem
from kb.models import DatasetPart, Document, Source


class State(StrEnum):
    """How what answers stands to what the source has now."""

    NOT_INDEXED = "not_indexed"  # nothing of it answers yet
    INDEXED = "indexed"
    STORED = "stored"  # kept as it is, and nothing of it answers: its policy says so
    CHANGED = "changed"  # an earlier version answers; the next run takes in the present one
    FAILED = "failed"  # the last attempt failed; an earlier version may answer
    GONE = "gone"  # the source no longer has it, and its chunks were removed


ALL = "all"
STATES = [*State, ALL]

# Of a document: it has passages, or rows, whose dataset another file may describe.
answers = Q(chunk_count__gt=0) | Exists(DatasetPart.objects.filter(document=OuterRef("pk")))

_STATE = Case(
    When(tombstoned_at__isnull=False, then=Value(State.GONE)),
    When(~Q(last_error=""), then=Value(State.FAILED)),
    When(content_hash=None, chunk_count=0, then=Value(State.NOT_INDEXED)),
    When(content_hash=None, then=Value(State.CHANGED)),  # purged: its chunks answer until the next run
    When(Q(file__isnull=False) & ~Q(content_hash=F("file__sha256")), then=Value(State.CHANGED)),
    When(~Q(space_id=F("knowledge_base__space_id")), then=Value(State.CHANGED)),
    When(answers, then=Value(State.INDEXED)),
    When(file__isnull=False, then=Value(State.STORED)),
    default=Value(State.INDEXED),
    output_field=CharField(),
)


# Of an item: nobody has begun with it.
is_untouched = Q(stage=RunItem.Stage.FETCHED, attempts=0, failures=0)


def _is_worked() -> Exists:
    """Whether the open run of the source is at the document."""
    runs = IngestionRun.objects.filter(source=OuterRef(OuterRef("source_id")), finished_at=None).exclude(kind=IngestionRun.Kind.PUSH)
    items = RunItem.objects.filter(run__in=runs.values("id"), key_hash=OuterRef("key_hash"))
    return Exists(items.exclude(stage=RunItem.Stage.DONE).exclude(is_untouched))


def with_state(rows: QuerySet[Document]) -> QuerySet[Document]:
    """The rows with `state` and `is_worked`, and with the file and source that they are told with."""
    found = rows.filter(source__state=Source.State.ACTIVE).annotate(state=_STATE, is_worked=_is_worked())
    return found.select_related("source", "file", "file__created_by")


def with_state_of(document: Document) -> Document:
    """The document again, with `state`. `NotFound` if it went meanwhile."""
    found = with_state(Document.objects.filter(id=document.id)).first()
    if found is None:
        raise NotFound()
    return found


def find_documents(
    rows: QuerySet[Document], *, source_id: UUID | None = None, state: str = "", query: str = "", files_only: bool = False
) -> QuerySet[Document]:
    """Rows of a knowledge base narrowed by source, state, and words of the title or key. Without a state, those that the source still
    has; `ALL` are those that are gone too. `InvalidInput` for an unknown state."""
    if state and state not in STATES:
        raise InvalidInput(f"state is '{state[:50]}': write one of {', '.join(STATES)}.")
    found = with_state(rows)
    if source_id:
        found = found.filter(source_id=source_id)
    if not state and not files_only:
        found = found.filter(tombstoned_at=None)
    elif state and state != ALL:
        found = found.filter(state=state)
    if query:
        found = found.filter(Q(title__icontains=query) | Q(key__icontains=query))
    return found.filter(file__isnull=False) if files_only else found
