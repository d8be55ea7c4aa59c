"""What is wanted of tables, as it crosses the pipe to the child: the policy, and what is known of the datasets that it names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ingestion.datasets.columns import Column

NAMED = "name:"
MAX_PARTS = 1_000  # of a dataset: a query opens each of its Parquet files


def named_key(name: str, *, scope: str) -> str:
    """The key of a dataset that a policy names. `scope` stands for the owner of a private file: his datasets are his alone."""
    return f"{NAMED}{scope}:{name}"


@dataclass(frozen=True, slots=True)
class Known:
    """What the other files of a dataset hold together."""

    columns: Sequence[Column]
    rows: int
    files: int
    parts: int

    def to_json(self) -> dict[str, Any]:
        counts = {"rows": self.rows, "files": self.files, "parts": self.parts}
        return {"columns": [column.to_json() for column in self.columns], **counts}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls([Column.from_json(column) for column in value["columns"]], value["rows"], value["files"], value["parts"])


@dataclass(frozen=True, slots=True)
class Wanted:
    """`key` stands for the file among those of its source; `known` has datasets by their keys. `fits` says whether a text is one passage
    for the model. `mode` auto makes datasets of what is a table beyond doubt, tabular of every table; text is not asked for here."""

    key: str
    fits: Callable[[str], bool]
    mode: str = "auto"
    name: str | None = None
    scope: str = ""
    replaces: bool = False
    """The file takes the place of all others of its dataset."""
    partition_by: Sequence[str] = ()
    delimiter: str | None = None
    header: bool = True
    known: Mapping[str, Known] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Mapping[str, Any], *, fits: Callable[[str], bool]) -> Self:
        known = {key: Known.from_json(value) for key, value in request.get("known", {}).items()}
        return cls(**{**request, "known": known}, fits=fits)
