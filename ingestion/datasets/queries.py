"""A query as the child answers it."""

from pathlib import Path
from typing import Any

from config.errors import ExtractionError
from ingestion.datasets.columns import Column
from ingestion.datasets.sealed import Refused, View, run_query
from ingestion.extract.base import Limits

# Of the child's memory, what DuckDB may hold; the rest is Python, and what DuckDB does not count.
MEMORY_SHARE = 0.5


def answer_query(request: dict[str, Any], *, limits: Limits) -> dict[str, Any]:
    """{columns, rows, truncated} for {sql, views: [{names, columns, parts}], max_rows}; `parts` are places in `paths`.

    Raises ExtractionError with a reason of sealed.Refused."""
    paths = [Path(request["path"]), *map(Path, request.get("more", ()))]
    views = [
        View(view["names"], [Column.from_json(column) for column in view["columns"]], [paths[place] for place in view["parts"]])
        for view in request["views"]
    ]
    memory = int(limits.max_memory_mb * MEMORY_SHARE)
    try:
        found = run_query(request["sql"], views, max_rows=request["max_rows"], seconds=limits.max_seconds, memory_mb=memory)
    except Refused as error:
        raise ExtractionError(str(error), reason=error.reason) from error
    return {"columns": found.columns, "rows": found.rows, "truncated": found.truncated}
