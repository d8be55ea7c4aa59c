"""What BM25 knows of a knowledge base: chunks, average length, and in how many chunks a term stands.

Triggers append signed deltas and nobody updates a shared row while publishing; `fold_statistics` adds them up and a query counts the ones
still pending. The average length is a bucket: as long as it stands, the stored impacts of a chunk need no change.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from django.db import connection, transaction

from kb.words.bm25 import K1, B, average_bucket

# A publication that meets more pending deltas than this folds them itself, so that they cannot pile up without the task. Measured with
# deltas of 25 chunks: each costs a query 0.25 ms; folding at 16 instead of never costs a publication 0.13 ms a chunk.
PENDING_AT_MOST = 16

_CORPUS = """
SELECT 0, coalesce(sum(chunks), 0)::bigint FROM (
    SELECT chunks FROM lexical_total WHERE organization = %(organization)s AND kb = ANY(%(kbs)s)
    UNION ALL
    SELECT chunks FROM lexical_delta WHERE organization = %(organization)s AND kb = ANY(%(kbs)s)
) counted
UNION ALL
SELECT term, sum(df)::bigint FROM (
    SELECT t.term, t.df FROM lexical_total o JOIN lexical_term t USING (kb)
    WHERE o.organization = %(organization)s AND o.kb = ANY(%(kbs)s) AND t.term = ANY(%(terms)s)
    UNION ALL
    SELECT u.term, u.n FROM lexical_delta d, unnest(d.terms, d.counts) AS u(term, n)
    WHERE d.organization = %(organization)s AND d.kb = ANY(%(kbs)s) AND d.terms && %(terms)s::int[] AND u.term = ANY(%(terms)s)
) held GROUP BY term
"""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Several knowledge bases counted as one: they get one query vector, so their scores can be compared."""

    chunks: int
    frequencies: dict[int, int]


def read_corpus(*, organization: UUID, knowledge_bases: Sequence[UUID], terms: Collection[int]) -> Corpus:
    """Chunks, and chunks that hold each of `terms`, pending deltas included. Another organization's knowledge bases count nothing."""
    with connection.cursor() as cursor:
        cursor.execute(_CORPUS, {"organization": organization, "kbs": list(knowledge_bases), "terms": list(terms)})
        counts = dict(cursor.fetchall())
    chunks = counts.pop(0)
    return Corpus(max(chunks, 0), {term: df for term, df in counts.items() if df > 0})


def fold_statistics(knowledge_base: UUID) -> int:
    """Add pending deltas to the statistics; how many, 0 also when somebody else is at it. Moves the average's bucket when it is off."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT lexical_fold(%s)", [knowledge_base])
        folded = cursor.fetchone()[0]
        if folded:
            _move_bucket(cursor, knowledge_base)
    return folded


def knowledge_bases_to_fold(limit: int = 100) -> list[UUID]:
    """Those with pending deltas, for the task that folds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT kb FROM lexical_delta LIMIT %s", [limit])
        return [kb for (kb,) in cursor.fetchall()]


def fold_if_piled_up(knowledge_base: UUID) -> None:
    """Fold inside a publication when the task does not keep up. Never waits: whoever holds the lock does the work."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT FROM lexical_delta WHERE kb = %s LIMIT %s) seen", [knowledge_base, PENDING_AT_MOST + 1]
        )
        piled_up = cursor.fetchone()[0] > PENDING_AT_MOST
    if piled_up:
        fold_statistics(knowledge_base)


def bucket_for(*, organization: UUID, knowledge_base: UUID, lengths: Sequence[int]) -> float:
    """The average that new rows are computed with. The first rows of a knowledge base set it."""
    query = "SELECT average FROM lexical_total WHERE kb = %s"
    with connection.cursor() as cursor:
        cursor.execute(query, [knowledge_base])
        row = cursor.fetchone()
        if row is None:
            first = average_bucket(sum(lengths) / max(len(lengths), 1))
            cursor.execute(
                "INSERT INTO lexical_total (kb, organization, average) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [knowledge_base, organization, first],
            )
            cursor.execute(query, [knowledge_base])
            row = cursor.fetchone()
    return row[0]


def refresh_impacts(knowledge_base: UUID, batch: int = 1000) -> int:
    """Recompute up to `batch` rows that were written under another average; how many. Call again until 0.

    Needs no text and no counts: an impact and the average it was computed with give the count back.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.chunk, l.length, l.average, t.average, l.impacts::text FROM lexical l JOIN lexical_total t ON t.kb = l.kb"
            " WHERE l.kb = %s AND l.average <> t.average ORDER BY l.chunk LIMIT %s FOR NO KEY UPDATE OF l SKIP LOCKED",
            [knowledge_base, batch],
        )
        rows = cursor.fetchall()
        if not rows:
            return 0
        changed = [_recomputed(text, length=length, old=old, new=new) for _, length, old, new, text in rows]
        cursor.execute(
            "UPDATE lexical l SET impacts = c.impacts::sparsevec, average = c.average"
            " FROM unnest(%s::bigint[], %s::float8[], %s::text[]) AS c(chunk, average, impacts) WHERE l.kb = %s AND l.chunk = c.chunk",
            [[row[0] for row in rows], [row[3] for row in rows], changed, knowledge_base],
        )
        return cursor.rowcount


def _recomputed(text: str, *, length: int, old: float, new: float) -> str:
    body, _, dimension = text.partition("}/")
    if len(body) <= 1:
        return text
    pairs = np.array([pair.split(":") for pair in body[1:].split(",")], dtype=np.float64)
    indices, impacts = pairs[:, 0].astype(np.int64), pairs[:, 1]
    rise = K1 + 1.0
    counts = np.maximum(np.rint(impacts * _norm(length, old) / (rise - impacts)), 1.0)
    fresh = counts * rise / (counts + _norm(length, new))
    return "{" + ",".join(f"{index}:{impact:.7g}" for index, impact in zip(indices, fresh, strict=True)) + "}/" + dimension


def _norm(length: int, average: float) -> float:
    return K1 * (1.0 - B + B * length / average)


def _move_bucket(cursor, knowledge_base: UUID) -> None:
    cursor.execute("SELECT chunks, length, average FROM lexical_total WHERE kb = %s", [knowledge_base])
    row = cursor.fetchone()
    if row is None or row[0] <= 0:
        return
    chunks, length, current = row
    moved = average_bucket(length / chunks, current)
    if moved != current:
        cursor.execute("UPDATE lexical_total SET average = %s WHERE kb = %s", [moved, knowledge_base])
