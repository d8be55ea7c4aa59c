"""Rows in the format of COPY … (FORMAT binary): measured several times as quick as multi-row inserts of the same rows. Pure."""

import json
import struct
from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike

from kb.words.bm25 import to_sparsevec_bytes

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = struct.pack(">h", -1)
_INT4_OID = 23
# What a half can hold; a larger number would be stored as infinity, which pgvector refuses.
LARGEST_HALF = 65504.0


def vector_rows(*, organization: UUID, space: int, knowledge_base: UUID, chunks: Sequence[int], vectors: ArrayLike) -> bytes:
    """(organization, space, kb, chunk, vector halfvec) of equal length, so the whole block is one numpy array."""
    values = np.asarray(vectors, dtype=np.float32)
    dimension = values.shape[1]
    layout = np.dtype(
        [
            ("fields", ">i2"),
            ("organization_size", ">i4"), ("organization", "V16"),
            ("space_size", ">i4"), ("space", ">i8"),
            ("kb_size", ">i4"), ("kb", "V16"),
            ("chunk_size", ">i4"), ("chunk", ">i8"),
            ("vector_size", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("vector", ">f2", (dimension,)),
        ]
    )  # fmt: skip
    rows = np.zeros(len(chunks), dtype=layout)
    rows["fields"] = 5
    rows["organization_size"] = rows["kb_size"] = 16
    rows["space_size"] = rows["chunk_size"] = 8
    rows["organization"] = np.void(organization.bytes)
    rows["kb"] = np.void(knowledge_base.bytes)
    rows["space"] = space
    rows["chunk"] = chunks
    rows["vector_size"] = 4 + 2 * dimension
    rows["dimension"] = dimension
    rows["vector"] = values
    return rows.tobytes()


def word_row(*, organization: UUID, knowledge_base: UUID, chunk: int, length: int, average: float, impacts: Mapping[int, float]) -> bytes:
    """(organization, kb, chunk, length, average, terms int[], impacts sparsevec)."""
    vector = to_sparsevec_bytes(impacts)
    terms = _integers(sorted(impacts))
    head = struct.pack(
        ">hi16si16siqiiidi",
        7, 16, organization.bytes, 16, knowledge_base.bytes, 8, chunk, 4, length, 8, average, len(terms),
    )  # fmt: skip
    return b"".join((head, terms, struct.pack(">i", len(vector)), vector))


def _integers(values: Sequence[int]) -> bytes:
    if not values:
        return struct.pack(">iii", 0, 0, _INT4_OID)
    elements = np.zeros(len(values), dtype=np.dtype([("size", ">i4"), ("value", ">i4")]))
    elements["size"] = 4
    elements["value"] = values
    return struct.pack(">iiiii", 1, 0, _INT4_OID, len(values), 1) + elements.tobytes()


def halfvec_text(vector: np.ndarray) -> str:
    """A vector of finite numbers in pgvector's text form: for a question, which goes once into a statement."""
    return json.dumps(vector.astype(np.float16).astype(np.float64).tolist(), separators=(",", ":"))
