"""Terms as numbers: the indices of a pgvector sparsevec. The hash is stored data: changing it means building every word row again."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from heapq import nlargest
from operator import itemgetter

# The largest dimension a sparsevec may have, and with it the largest index.
DIMENSION = 1_000_000_000
# pgvector refuses more than 16,000 non-zeros; a chunk with more than this is a dump, and its commonest terms say what it is about.
MAX_TERMS = 4_000


@lru_cache(maxsize=65_536)
def term_hash(term: str) -> int:
    """1…999,999,999, the same on every machine and in every process."""
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (DIMENSION - 1) + 1


def hash_counts(counts: Mapping[str, int]) -> dict[int, int]:
    """Counts by hash; terms that collide are added up (a repeated index is an error in a sparsevec). The most frequent 4,000 stay."""
    merged: dict[int, int] = {}
    for term, count in counts.items():
        key = term_hash(term)
        merged[key] = merged.get(key, 0) + count
    if len(merged) > MAX_TERMS:
        # Ties by hash, so that the same text always keeps the same terms.
        merged = dict(nlargest(MAX_TERMS, sorted(merged.items()), key=itemgetter(1)))
    return merged


def hash_weights(weights: Mapping[str, float]) -> dict[int, float]:
    """The query's side of hash_counts."""
    merged: dict[int, float] = {}
    for term, weight in weights.items():
        key = term_hash(term)
        merged[key] = merged.get(key, 0.0) + weight
    return merged


def hash_written(words: Iterable[tuple[str, str]]) -> frozenset[tuple[str, int]]:
    """Words as they are written, each with its term's hash."""
    return frozenset((word, term_hash(term)) for word, term in words)
