"""One SELECT over the views that it is given, and nothing else of DuckDB: no file, no setting, no other table. Child processes only.

Three walls, each of which would do: the statement is read before it runs and may name nothing but its views; DuckDB is told to open no file
but theirs and to take no setting; and the process may read nothing else (ingestion.extract.landlock).
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from ingestion.datasets.columns import Column
from ingestion.datasets.engine import connect, words_of
from ingestion.datasets.names import literal, quoted
from ingestion.datasets.values import MAX_ANSWER_BYTES, plain, size_of

# Tables that are made of nothing but their arguments.
TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest"})
# What tells of the process or leaves traces in it.
REFUSED_FUNCTIONS = frozenset(
    {
        "current_setting",
        "write_log",
        "getvariable",
        "nextval",
        "currval",
        "current_query",
        "json_serialize_plan",
        "json_execute_serialized_sql",
    }
    | {"current_connection_id", "current_transaction_id", "current_query_id", "getenv", "pg_sleep", "sleep_ms", "in_search_path"}
)
SYSTEM_TABLES = ("duckdb_", "pg_", "pragma_", "sqlite_")
_LOCAL_NAME = re.compile(r"\w+")
FETCHED = 500
# In the words of a type; names and values in quotes are none of it.
_INTERVAL = re.compile(r"\"[^\"]*\"|'[^']*'|\b(INTERVAL)\b")
TOO_DEEP = "The query is nested too deeply. Write it with fewer levels."


class Refused(Exception):
    """The statement may not run, or did not come to an end: why, as a sentence with advice. `reason` is a short code."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class View:
    """A dataset as SQL sees it: its names, its columns, and the files whose rows it has."""

    names: Sequence[str]
    columns: Sequence[Column]
    parts: Sequence[Path]


@dataclass(frozen=True, slots=True)
class Rows:
    columns: list[dict[str, str]]
    rows: list[list[Any]]
    truncated: bool


def run_query(sql: str, views: Sequence[View], *, max_rows: int, seconds: float, memory_mb: int) -> Rows:
    """At most `max_rows` rows that JSON can hold; `truncated` says that there were more. Raises Refused."""
    allowed = "[" + ", ".join(literal(str(part)) for view in views for part in view.parts) + "]"
    with connect(memory_mb=memory_mb) as database:
        database.execute(f"SET allowed_paths = {allowed}")
        database.execute("SET enable_external_access = false")
        for view in views:
            for name in view.names:
                database.execute(f"CREATE VIEW {quoted(name)} AS {_select(view)}")
        statement = _one_select(database, sql, views)
        database.execute("SET lock_configuration = true")
        stop = threading.Timer(seconds, database.interrupt)
        stop.start()
        try:
            return _answer(database, statement, max_rows=max_rows)
        except RecursionError as error:
            raise Refused(TOO_DEEP, reason="invalid_query") from error
        except duckdb.InterruptException as error:
            message = f"The query took longer than {seconds:g} seconds. Narrow it by a WHERE, or aggregate before you join."
            raise Refused(message, reason="time_limit") from error
        except (duckdb.OutOfMemoryException, MemoryError) as error:
            message = f"The query needed more than {memory_mb} MB of memory. Select fewer columns or rows, or aggregate first."
            raise Refused(message, reason="memory_limit") from error
        except (duckdb.Error, OverflowError, ValueError) as error:
            raise Refused(f"The query failed: {_without_paths(words_of(error), views)}", reason="invalid_query") from error
        finally:
            stop.cancel()


def _select(view: View) -> str:
    """Rows of all parts under the columns of the dataset: a part without one of them has nothing there, a narrower type is widened."""
    files = "[" + ", ".join(literal(str(part)) for part in view.parts) + "]"
    chosen = ", ".join(f"CAST({quoted(column.name)} AS {column.type}) AS {quoted(column.name)}" for column in view.columns)
    return f"SELECT {chosen} FROM read_parquet({files}, union_by_name = true)"  # noqa: S608 - names are quoted


def _one_select(database: duckdb.DuckDBPyConnection, sql: str, views: Sequence[View]) -> str:
    """The statement, once it is known to name its views only."""
    try:
        statements = database.extract_statements(sql)
    except duckdb.Error as error:
        raise Refused(f"This is no SQL that can be read: {words_of(error)}", reason="invalid_query") from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise Refused("Send exactly one SELECT statement (WITH … SELECT is one too).", reason="not_a_select")
    statement = statements[0].query.strip().rstrip(";")
    try:
        tree = json.loads(database.execute("SELECT json_serialize_sql(?)", [statement]).fetchone()[0])  # type: ignore[index]
    except (RecursionError, duckdb.Error) as error:
        raise Refused(TOO_DEEP, reason="invalid_query") from error
    if tree.get("error"):
        raise Refused("Send exactly one SELECT statement; PIVOT and the like are not read.", reason="not_a_select")
    known = {name.casefold() for view in views for name in view.names}
    nodes = list(_nodes(tree))
    local = [entry["key"] for node in nodes for entry in (node.get("cte_map") or {}).get("map", ())]
    local += [node["cte_name"] for node in nodes if node.get("cte_name")]
    # Where such a name does not reach, DuckDB would take it for a file or for a table of its own.
    known |= {name.casefold() for name in local if _LOCAL_NAME.fullmatch(name) and not name.casefold().startswith(SYSTEM_TABLES)}
    for node in nodes:
        _check(node, known, views)
    return statement


def _check(node: Mapping[str, Any], known: set[str], views: Sequence[View]) -> None:
    kind = node.get("type")
    if kind == "BASE_TABLE":
        named = [node.get(part) or "" for part in ("catalog_name", "schema_name", "table_name")]
        if any(named[:2]) or named[2].casefold() not in known:
            shown = ", ".join(name for view in views for name in view.names)
            raise Refused(f"There is no table “{'.'.join(filter(None, named))}”. This query may read: {shown}.", reason="unknown_table")
    elif kind == "TABLE_FUNCTION":
        name = str((node.get("function") or {}).get("function_name", "")).casefold()
        if name not in TABLE_FUNCTIONS:
            message = f"{name}() is not available here: a query reads the tables of its datasets, and no files or settings."
            raise Refused(message, reason="refused_function")
    elif kind == "SHOW_REF":
        message = "DESCRIBE, SHOW and SUMMARIZE are no SELECT. The dataset itself lists its columns and types."
        raise Refused(message, reason="not_a_select")
    elif kind == "FUNCTION" and str(node.get("function_name", "")).casefold() in REFUSED_FUNCTIONS:
        raise Refused(f"{node['function_name']}() is not available here.", reason="refused_function")


def _without_paths(text: str, views: Sequence[View]) -> str:
    for path in (part for view in views for part in view.parts):
        text = text.replace(str(path), "a file of the dataset")
    return text


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of the tree; without recursion, because a statement may be deep."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _answer(database: duckdb.DuckDBPyConnection, statement: str, *, max_rows: int) -> Rows:
    """Intervals come as DuckDB writes them: Python's have no months, and would make 150 days of five of them."""
    described = [(str(name), str(kind)) for name, kind, *_ in database.execute(f"DESCRIBE {statement}").fetchall()]
    texts = [_INTERVAL.sub(lambda found: "VARCHAR" if found[1] else found[0], kind) for _, kind in described]
    if all(text == kind for text, (_, kind) in zip(texts, described, strict=True)):
        return _fetch(database.execute(statement), max_rows=max_rows)
    names = [f"c{place}" for place in range(len(described))]
    chosen = ", ".join(f"CAST({name} AS {text})" for name, text in zip(names, texts, strict=True))
    found = _fetch(database.execute(f"SELECT {chosen} FROM ({statement}\n) AS t({', '.join(names)})"), max_rows=max_rows)  # noqa: S608
    return Rows([{"name": name, "type": kind} for name, kind in described], found.rows, found.truncated)


def _fetch(answer: duckdb.DuckDBPyConnection, *, max_rows: int) -> Rows:
    columns = [{"name": str(name), "type": str(kind)} for name, kind, *_ in answer.description or ()]
    rows: list[list[Any]] = []
    room = MAX_ANSWER_BYTES
    while batch := answer.fetchmany(min(FETCHED, max_rows + 1 - len(rows))):
        for row in batch:
            values = [plain(value) for value in row]
            room -= size_of(values)
            if room < 0 and not rows:
                message = f"A row of the answer has more than {MAX_ANSWER_BYTES:,} bytes. Select fewer columns, or shorten them."
                raise Refused(message, reason="answer_too_large")
            if room < 0 or len(rows) == max_rows:
                return Rows(columns, rows, truncated=True)
            rows.append(values)
    return Rows(columns, rows, truncated=False)
