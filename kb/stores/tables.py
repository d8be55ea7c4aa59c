"""Names of the tables, partitions and indexes that `kb.stores` reads and writes. All of them are built here and nowhere else."""

from psycopg import sql

from config.errors import InvalidInput
from kb.models.spaces import DIMENSIONS

# Leaves of a space: a knowledge base lives in one of them, so an index holds about a quarter of the space.
LEAVES = 4


def embedding_name(dimension: int) -> str:
    if dimension not in DIMENSIONS:
        known = ", ".join(map(str, DIMENSIONS))
        raise InvalidInput(
            f"There is no vector table for {dimension} dimensions. Use a model with one of: {known}.", known=list(DIMENSIONS)
        )
    return f"embedding_{dimension}"


def embedding_table(dimension: int) -> sql.Identifier:
    return sql.Identifier(embedding_name(dimension))


def space_name(dimension: int, space: int) -> str:
    return f"{embedding_name(dimension)}_s{space:d}"


def leaf_name(dimension: int, space: int, remainder: int) -> str:
    return f"{space_name(dimension, space)}_h{remainder:d}"


def index_name(leaf: str, kind: str = "halfvec") -> str:
    return f"{leaf}_hnsw" if kind == "halfvec" else f"{leaf}_bits"


def signs(dimension: int, vector: str = "vector") -> str:
    """SQL for the signs of a vector's numbers, as a `binary` index holds them: only written just so does the planner see the index."""
    return f"(binary_quantize({vector})::bit({dimension:d}))"
