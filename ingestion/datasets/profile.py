"""What a Parquet file of ours holds, as its description tells it: first rows, ends of numbers and dates, the few values of a column."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingestion.datasets.columns import Column
from ingestion.datasets.engine import connect
from ingestion.datasets.names import literal, quoted

PROFILED_COLUMNS = 64
FEW_VALUES = 8
MAX_VALUE = 40
_RANGED = ("DATE", "TIMESTAMP", "BIGINT", "INTEGER", "DECIMAL", "DOUBLE", "FLOAT", "SMALLINT", "HUGEINT")


@dataclass(frozen=True, slots=True)
class Profile:
    sample: list[tuple[Any, ...]]
    values: dict[str, str]


def profile(path: Path, columns: list[Column], *, rows: int) -> Profile:
    """`rows` is how many of the first ones are wanted."""
    source = f"read_parquet({literal(str(path))})"
    with connect() as database:
        sample = database.execute(f"SELECT * FROM {source} LIMIT {rows}").fetchall()  # noqa: S608 - the path is ours
        known = [column for column in columns[:PROFILED_COLUMNS] if not column.is_empty]
        ranged = [column for column in known if column.type.startswith(_RANGED)]
        worded = [column for column in known if column.type == "VARCHAR"]
        asked = [f"min({quoted(c.name)}), max({quoted(c.name)})" for c in ranged]
        asked += [f"approx_count_distinct({quoted(c.name)}), max(length({quoted(c.name)}))" for c in worded]
        if not asked:
            return Profile(sample, {})
        answers = list(database.execute(f"SELECT {', '.join(asked)} FROM {source}").fetchone() or ())  # noqa: S608
        pairs = list(zip(answers[::2], answers[1::2], strict=True))
        values = {c.name: _range(*pair) for c, pair in zip(ranged, pairs[: len(ranged)], strict=True)}
        for column, (distinct, longest) in zip(worded, pairs[len(ranged) :], strict=True):
            if distinct <= FEW_VALUES and (longest or 0) <= MAX_VALUE:
                name = quoted(column.name)
                found = database.execute(f"SELECT DISTINCT {name} FROM {source} WHERE {name} IS NOT NULL ORDER BY 1").fetchall()  # noqa: S608
                values[column.name] = ", ".join(str(value) for (value,) in found[:FEW_VALUES])
        return Profile(sample, values)


def _range(least: Any, most: Any) -> str:
    return str(least) if least == most else f"{least} to {most}"
