"""Ranked lists side by side: at which place each has a passage, what they share, and what only one of them found. Pure."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

Id = TypeVar("Id", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Row(Generic[Id]):
    """One thing that any list holds, with its place in each: 1 is the first, None where it is not in it."""

    id: Id
    places: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Pair(Generic[Id]):
    """Two lists by their numbers. `overlap` is what they share as a part of what either holds (Jaccard), 1 for two empty ones."""

    first: int
    second: int
    shared: int
    overlap: float
    only_first: tuple[Id, ...]
    only_second: tuple[Id, ...]


def lay_out(lists: Sequence[Sequence[Id]]) -> list[Row[Id]]:
    """Everything once, by its best place in any list, ties in the order of the lists."""
    places = [{one: place for place, one in reversed(list(enumerate(ranked, start=1)))} for ranked in lists]
    everything = dict.fromkeys(one for ranked in lists for one in ranked)
    rows = [Row(one, tuple(found.get(one) for found in places)) for one in everything]
    return sorted(rows, key=lambda row: min(place for place in row.places if place is not None))


def pair_up(lists: Sequence[Sequence[Id]]) -> list[Pair[Id]]:
    """Each list with each later one."""
    pairs = []
    for (first, one), (second, other) in combinations(enumerate(lists), 2):
        shared, either = len({*one} & {*other}), len({*one} | {*other})
        only_first, only_second = (tuple(dict.fromkeys(x for x in a if x not in {*b})) for a, b in ((one, other), (other, one)))
        pairs.append(Pair(first, second, shared, shared / either if either else 1.0, only_first, only_second))
    return pairs
