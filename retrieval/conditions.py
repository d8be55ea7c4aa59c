"""The conditions of a request one by one: which hold for a document, for whoever asks why it passed or not."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, Case, Value, When

from kb.models import Document
from retrieval.explanation import ExplainedCondition
from retrieval.filters import Comparison, Group, Negation, compile_filter
from retrieval.metadata import MetadataTypes

# Of a list of values, those that are told.
_VALUES = 20


@dataclass(frozen=True, slots=True)
class Holding:
    """Whether all of a request's filters hold for a document, and each of its conditions."""

    whole: bool
    conditions: list[ExplainedCondition]


NO_FILTERS = Holding(True, [])


def conditions_of(
    condition: Comparison | Group | Negation | None, types: MetadataTypes, *, organization: UUID, documents: Collection[UUID]
) -> dict[UUID, Holding]:
    """By document, in one statement; `types` as the search compared by. Without filters everything holds."""
    if condition is None or not documents:
        return dict.fromkeys(documents, NO_FILTERS)
    leaves = list(_leaves(condition, "filters"))
    asked = {"whole": _holds(condition, types, "filters")}
    asked |= {f"leaf_{n}": _holds(leaf, types, path) for n, (path, leaf) in enumerate(leaves)}
    rows = Document.objects.filter(organization=organization, id__in=list(documents)).annotate(**asked).values("id", *asked)
    return {
        row["id"]: Holding(
            row["whole"],
            [
                ExplainedCondition(path=path, type=leaf.type, key=leaf.key, value=_told(leaf.value), holds=row[f"leaf_{n}"])
                for n, (path, leaf) in enumerate(leaves)
            ],
        )
        for row in rows
    }


def _holds(condition: Comparison | Group | Negation, types: MetadataTypes, path: str) -> Case:
    holds = compile_filter(condition, types=types, path=path)
    return Case(When(holds, then=Value(True)), default=Value(False), output_field=BooleanField())


def _leaves(condition: Comparison | Group | Negation, path: str) -> Iterator[tuple[str, Comparison]]:
    if isinstance(condition, Comparison):
        yield path, condition
    elif isinstance(condition, Negation):
        yield from _leaves(condition.filter, f"{path}.filter")
    else:
        for place, part in enumerate(condition.filters):
            yield from _leaves(part, f"{path}.filters[{place}]")


def _told(value: Any) -> Any:
    return [*value[:_VALUES], "…"] if isinstance(value, list) and len(value) > _VALUES else value
