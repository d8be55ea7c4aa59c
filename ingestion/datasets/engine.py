"""DuckDB as it is used here: in one thread, within a bound of memory, with nothing on disk but what it is given. Child processes only."""

import os
from collections.abc import Mapping

import duckdb

MEMORY_MB = 192
# Where these are set, DuckDB does not read the system's control groups, which a child may not, to find out what it is given below anyway.
_ASKED_FIRST = {"SLURM_CPUS_ON_NODE": "1", "SLURM_MEM_PER_NODE": "512M"}
_SETTINGS = {
    "threads": "1",
    "temp_directory": "",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    "enable_external_file_cache": "false",
}


def connect(*, memory_mb: int = MEMORY_MB, more: Mapping[str, str] | None = None) -> duckdb.DuckDBPyConnection:
    """An empty database in memory; names of Python's variables are no tables to it, and extensions stay out."""
    os.environ.update(_ASKED_FIRST)
    database = duckdb.connect(":memory:", config={**_SETTINGS, "memory_limit": f"{memory_mb}MB", **(more or {})})
    database.execute("SET TimeZone = 'UTC'")
    return database


def words_of(error: Exception) -> str:
    """What DuckDB says, without its kind, its drawing of the place, and its advice about settings."""
    text = str(error).split("\n\n", 1)[0]
    for kind in ("Error: ", "INTERRUPT "):
        text = text.partition(kind)[2] or text
    return " ".join(text.split())[:500]
