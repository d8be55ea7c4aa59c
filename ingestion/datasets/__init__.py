"""Tables as typed data: what their columns hold, Parquet of them, the words that describe them, SQL over them.

Pure. DuckDB is imported only where rows are read or written, in child processes."""
