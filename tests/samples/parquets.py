"""Parquet files made by code."""

from pathlib import Path

import duckdb


def parquet_file(select: str, path: Path) -> bytes:
    """What a SELECT gives, as a Parquet file that is written to `path`."""
    with duckdb.connect(":memory:") as database:
        database.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path.read_bytes()
