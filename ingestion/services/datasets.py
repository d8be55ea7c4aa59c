"""Datasets as people see them, and queries over them."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from config.errors import ExtractionError, InvalidInput, LecternError, NotFound, Unavailable
from ingestion.children import query_sandbox
from ingestion.datasets.columns import Column
from ingestion.parts import together
from ingestion.services.query_places import Places
from kb import access, blobs
from kb.access import Actor
from kb.models import Dataset, DatasetPart, Source

MAX_DATASETS = 10
MAX_PARTS = 1_000
PATIENCE_SECONDS = 3.0
# In SQL the dataset of the address has this name too, so that a query need not know its own.
ALIAS = "dataset"
# As many run as there are children for them, and one of those stays free of each organization.
_CHILDREN = max(2, settings.ENV.extract_children)
_places = Places(total=_CHILDREN, each=_CHILDREN - 1, patience=PATIENCE_SECONDS)
# Of the statement itself; every other reason is ours.
OF_THE_STATEMENT = frozenset(
    ("not_a_select", "unknown_table", "refused_function", "invalid_query", "time_limit", "memory_limit", "answer_too_large", "crashed")
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A dataset with what the actor may see of it."""

    dataset: Dataset
    columns: list[Column]
    parts: list[DatasetPart]


@dataclass(frozen=True, slots=True)
class Asked:
    """A dataset of a query, and the name that SQL shall call it by."""

    id: UUID
    name: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query found; `truncated` says that there is more. `sources` are the datasets that it could read, by the names they had."""

    columns: list[dict[str, str]]
    rows: list[list[Any]]
    truncated: bool
    sources: list[tuple[str, Seen]]
    seconds: float


def visible_parts(actor: Actor) -> QuerySet[DatasetPart]:
    """Of documents that the actor may read."""
    return access.rows(actor, DatasetPart).filter(dataset__source__state=Source.State.ACTIVE)


def visible_datasets(actor: Actor) -> QuerySet[Dataset]:
    """Those of which the actor may read a file, with `rows`, `files` and `size` of what it may read."""
    seen = Q(parts__in=visible_parts(actor))
    return (
        access.rows(actor, Dataset)
        .filter(Exists(visible_parts(actor).filter(dataset=OuterRef("id"))))
        .annotate(
            rows=Sum("parts__rows", filter=seen),
            size=Sum("parts__size", filter=seen),
            files=Count("parts__document", filter=seen, distinct=True),
        )
    )


def see_dataset(actor: Actor, identifier: str | UUID) -> Seen:
    """`NotFound` for one that is not there, somebody else's, or empty."""
    dataset = visible_datasets(actor).filter(id=access.parse_id(identifier)).first()
    if dataset is None:
        raise NotFound()
    (seen,) = see_all(actor, [dataset])
    return seen


def see_all(actor: Actor, datasets: Sequence[Dataset]) -> list[Seen]:
    """In their order, with the columns of all that the actor may read of each."""
    parts: dict[UUID, list[DatasetPart]] = {dataset.id: [] for dataset in datasets}
    for part in visible_parts(actor).filter(dataset__in=list(parts)).select_related("blob", "document").order_by("id"):
        parts[part.dataset_id].append(part)
    return [Seen(dataset, list(together(parts[dataset.id]).columns), parts[dataset.id]) for dataset in datasets]


def query_datasets(actor: Actor, asked: Sequence[Asked], *, sql: str, max_rows: int) -> Answer:
    """Run one SELECT over the datasets, the first of which is also called `dataset`. Raises `InvalidInput` with a `reason` for what is
    wrong with the statement, `NotFound`, `TooManyRequests`, and `Unavailable` where a file cannot be read."""
    named = _named([(each, see_dataset(actor, each.id)) for each in asked])
    count = sum(len(seen.parts) for _, seen in named)
    if count > MAX_PARTS:
        raise InvalidInput(f"These datasets are in {count:,} files, more than the {MAX_PARTS:,} that one query reads. Query fewer of them.")
    with _places.hold(actor.organization.id):
        started = time.monotonic()
        found = _run(named, sql=sql, max_rows=max_rows)
    sources = [(names[0], seen) for names, seen in named]
    return Answer(found["columns"], found["rows"], found["truncated"], sources, round(time.monotonic() - started, 3))


def _named(asked: Sequence[tuple[Asked, Seen]]) -> list[tuple[list[str], Seen]]:
    """The names of each, no two the same: a clash is told, and the asker chooses."""
    taken: dict[str, UUID] = {}
    named: list[tuple[list[str], Seen]] = []
    for each, seen in asked:
        name = each.name or seen.dataset.name
        if name.casefold() in taken:
            message = f"Two datasets of the query are called “{name}”. Give one of them another name in `datasets`."
            raise InvalidInput(message, errors=[{"path": "datasets", "message": message}])
        taken[name.casefold()] = each.id
        named.append(([name], seen))
    if ALIAS not in taken:
        named[0][0].append(ALIAS)
    return named


def _run(named: Sequence[tuple[list[str], Seen]], *, sql: str, max_rows: int) -> dict[str, Any]:
    limits = {"max_seconds": settings.ENV.query_seconds, "max_memory_mb": settings.ENV.extract_memory_mb}
    with ExitStack() as lent:
        paths = [str(lent.enter_context(blobs.local_path(part.blob))) for _, seen in named for part in seen.parts]
        views, place = [], 0
        for names, seen in named:
            columns = [column.to_json() for column in seen.columns]
            views.append({"names": names, "columns": columns, "parts": list(range(place, place + len(seen.parts)))})
            place += len(seen.parts)
        request = {"op": "query", "name": "The query", "path": paths[0], "more": paths[1:], "limits": limits}
        try:
            return query_sandbox().run(
                request | {"sql": sql, "views": views, "max_rows": max_rows}, owner=named[0][1].dataset.organization_id
            )
        except ExtractionError as error:
            raise _told(error) from error


def _told(error: ExtractionError) -> LecternError:
    """What the child says of the statement; a child that was killed for it says nothing itself."""
    if error.reason not in OF_THE_STATEMENT:
        return Unavailable("The query could not be run. Try again; if it stays so, ask an operator to look at the log.")
    seconds = f"{settings.ENV.query_seconds:g} seconds"
    killed = {
        "time_limit": f"The query took longer than {seconds}. Narrow it by a WHERE, or aggregate before you join.",
        "memory_limit": "The query needed more memory than a query may have. Select fewer columns or rows, or aggregate first.",
        "crashed": "The query made its process crash. Write it in another way.",
    }
    message = killed.get(error.reason, error.message)
    return InvalidInput(message, reason=error.reason, errors=[{"path": "sql", "message": message}])
