"""How alike two texts are by their words: near-duplicates, and an order in which hits say different things. Pure.

Near-duplicates are told strictly, because a hit that is folded into another is not read: nine tenths of all runs of three words are the
same, and every number is. Two price lists that differ in a price stay two.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kb.words.folding import normalise
from kb.words.tokens import bigrams, is_spaceless, tokens

NEARLY = 0.9
_RUN = 3


@dataclass(frozen=True, slots=True)
class Wordprint:
    """What of a text counts when it is compared: its runs of words, its words, and what holds a digit."""

    runs: frozenset[tuple[str, ...]]
    words: frozenset[str]
    numbers: tuple[tuple[str, int], ...]


def wordprint(text: str) -> Wordprint:
    words: list[str] = []
    for token in tokens(normalise(text)):
        words += bigrams(token) if is_spaceless(token) else [token.casefold()]
    runs = {tuple(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1))}
    numbers = Counter(word for word in words if any(character.isdigit() for character in word))
    return Wordprint(frozenset(runs), frozenset(words), tuple(sorted(numbers.items())))


def nearly_equal(one: Wordprint, other: Wordprint) -> bool:
    shared = len(one.runs & other.runs)
    return one.numbers == other.numbers and shared >= NEARLY * (len(one.runs) + len(other.runs) - shared)


def overlap(one: Wordprint, other: Wordprint) -> float:
    """0 (no word in common) to 1, where no vectors say it."""
    if not one.words or not other.words:
        return 0.0
    return len(one.words & other.words) / math.sqrt(len(one.words) * len(other.words))


def diversified(scores: Sequence[float], diversity: Sequence[float], alike: Callable[[int, int], float], wanted: int) -> list[int]:
    """Places of a ranked list by maximal marginal relevance: each next one is the best of what is left after `diversity` (0–1, of its own)
    of what it repeats is taken off. `wanted` are chosen so, the rest follows as it stood."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    relevance = [(score - low) / (high - low) if high > low else 1.0 for score in scores]
    left = list(range(len(scores)))
    nearest = [0.0] * len(scores)
    order: list[int] = []
    while left and len(order) < wanted:
        best = max(left, key=lambda place: ((1 - diversity[place]) * relevance[place] - diversity[place] * nearest[place], -place))
        left.remove(best)
        order.append(best)
        for place in left:
            nearest[place] = max(nearest[place], alike(best, place))
    return order + left
