"""Words as they are written, with the terms they count as: what a question means that names only a beginning (`connect*`)."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db import connection

from kb.words import compounds

# Words of one beginning that are asked for, the commonest: `a*` is no question.
MOST_WORDS = 48

_ADD = """
INSERT INTO lexical_word (organization, kb, word, term)
SELECT %(organization)s, %(kb)s, w.word, w.term FROM unnest(%(words)s::text[], %(terms)s::int[]) AS w(word, term)
WHERE NOT EXISTS (SELECT FROM lexical_word h WHERE h.kb = %(kb)s AND h.word = w.word COLLATE "C" AND h.term = w.term)
ORDER BY w.word COLLATE "C", w.term ON CONFLICT DO NOTHING
"""
# Counted as they were last folded: a word that came since counts once.
_READ = """
SELECT w.term FROM lexical_word w LEFT JOIN lexical_term t ON t.kb = w.kb AND t.term = w.term
WHERE w.organization = %(organization)s AND w.kb = ANY(%(kbs)s) AND w.word >= %(first)s AND w.word < %(last)s
GROUP BY w.term ORDER BY max(coalesce(t.df, 1)) DESC, w.term LIMIT %(limit)s
"""
_KNOWN = """
SELECT word, array_agg(DISTINCT term) FROM lexical_word
WHERE organization = %(organization)s AND kb = ANY(%(kbs)s) AND word = ANY(%(words)s) GROUP BY word
"""
_LOCK = "SELECT pg_advisory_xact_lock_shared(hashtextextended('lexical_word:' || %s, 0))"
_ORPHANS = """
FROM lexical_word w WHERE w.kb = %(kb)s
AND NOT EXISTS (SELECT FROM lexical_term t WHERE t.kb = w.kb AND t.term = w.term)
AND NOT EXISTS (SELECT FROM lexical_delta d WHERE d.kb = w.kb AND w.term = ANY(d.terms))
"""


def add_written(*, organization: UUID, knowledge_base: UUID, words: Iterable[tuple[str, int]]) -> None:
    """Remember (word, term hash) pairs; those that are known are left as they are. Part of a publication's transaction."""
    pairs = sorted(set(words))
    if not pairs:
        return
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [str(knowledge_base)])
        parameters = {"organization": organization, "kb": knowledge_base}
        cursor.execute(_ADD, parameters | {"words": [word for word, _ in pairs], "terms": [term for _, term in pairs]})


def terms_beginning(*, organization: UUID, knowledge_bases: Sequence[UUID], beginning: str) -> list[int]:
    """Term hashes of the commonest words that begin so (folded). `beginning` must not be empty."""
    # In the order of code points, nothing that begins so stands behind it with the highest one appended.
    parameters = {"organization": organization, "kbs": list(knowledge_bases), "first": beginning, "last": beginning + "\U0010ffff"}
    with connection.cursor() as cursor:
        cursor.execute(_READ, parameters | {"limit": MOST_WORDS})
        return [term for (term,) in cursor.fetchall()]


def terms_of_parts(*, organization: UUID, knowledge_bases: Sequence[UUID], words: Sequence[str]) -> list[int]:
    """Term hashes of the parts of compounds (folded), as far as both parts of one are words of the knowledge bases."""
    wanted = {part for word in words for pair in compounds.candidates(word) for part in pair}
    if not wanted:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, {"organization": organization, "kbs": list(knowledge_bases), "words": list(wanted)})
        known: dict[str, list[int]] = dict(cursor.fetchall())
    found = [pair for word in words if (pair := compounds.split(word, known))]
    return [term for pair in found for part in pair for term in known[part]]


def count_orphans(knowledge_base: UUID) -> int:
    """Words that no chunk holds: those whose last chunk went while something was being published."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) {_ORPHANS}", {"kb": knowledge_base})
        return cursor.fetchone()[0]


def remove_orphans(knowledge_base: UUID) -> int:
    """Needs the caller's transaction, and waits for publications that are under way."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK.replace("_shared", ""), [str(knowledge_base)])
        cursor.execute(f"DELETE {_ORPHANS}", {"kb": knowledge_base})
        return cursor.rowcount
