"""What must be true of a crawled site's documents, told from the site and from what went wrong, never from the product's own code.

A document is known as a set of states that it may be in. Most sets have one member; where the rules leave it open (or chance decides which
request meets a fault) they have more, each for a reason that is said where it arises. A look at what answers narrows the set.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tests.benchmarks.soak.texts import Text


@dataclass(frozen=True, slots=True)
class State:
    """`text` None: it does not answer. `misses`: runs that concluded without it since it was last there."""

    text: Text | None
    misses: int = 0


Belief = frozenset[State]
NOTHING: Belief = frozenset({State(None)})


class Sight(StrEnum):
    READ = "read"
    UNKNOWN = "unknown"  # looked at, nothing learned
    MISSING = "missing"  # a definite no, or it never came up
    MOVED = "moved"  # redirects for good to a page that was read: what took its place answers, and both would answer twice


class Kind(StrEnum):
    PAGE = "page"
    GONE = "gone"  # 404 or 410
    MOVED = "moved"  # 301 to `target`


@dataclass(frozen=True, slots=True)
class Node:
    """An address of the site as it is, without today's faults."""

    kind: Kind
    text: Text | None = None
    links: tuple[str, ...] = ()
    listed: bool = False  # in the sitemap
    target: str = ""


class Trouble(StrEnum):
    """What a fault makes of one address."""

    SURELY = "surely"  # whoever asks learns nothing, however often
    PERHAPS = "perhaps"  # the first answer is a failure: a second attempt would succeed, and may or may not be made


class Listing(StrEnum):
    """How much of the sitemap's list a run has."""

    ALL = "all"
    PERHAPS = "perhaps"  # it is cut short: what stands before the cut may be used, or not
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Weather:
    """One run's faults. `deaf`: no page says anything (all is unreachable, 5xx, in maintenance, behind a login or a robots.txt)."""

    deaf: bool = False
    troubled: Mapping[str, Trouble] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()  # answer 404 today
    listing: Listing = Listing.ALL
    sitemap_whole: bool = True  # it was read to its end, or there is none
    stopped: bool = False  # at a limit, or by a person: any page may have been read before


@dataclass(frozen=True, slots=True)
class Look:
    """What one run can have seen of each address, and whether it may conclude anything about what it did not see."""

    sights: Mapping[str, frozenset[Sight]]
    concludes: frozenset[bool]


def look_at(site: Mapping[str, Node], weather: Weather, *, start: str, max_depth: int) -> Look:
    if weather.deaf:
        return Look({path: frozenset({Sight.UNKNOWN}) for path in site}, frozenset({False}))
    site = {path: replace(node, kind=Kind.GONE) if path in weather.absent else node for path, node in site.items()}
    listed = [path for path, node in site.items() if node.listed]
    troubled = weather.troubled
    surely = _reach(site, [start, *(listed if weather.listing == Listing.ALL else ())], max_depth, lambda path: path not in troubled)
    seeds = [start, *(listed if weather.listing != Listing.NONE else ())]
    perhaps = _reach(site, seeds, max_depth, lambda path: troubled.get(path) != Trouble.SURELY)
    behind = _reach(site, seeds, max_depth, lambda path: True)
    answers = {path: _answer(path, site, weather) for path in site}
    sights: dict[str, frozenset[Sight]] = {}
    for path in site:
        if path in perhaps:
            unsure = path not in surely or weather.stopped
            sights[path] = answers[path] | ({Sight.MISSING} if unsure else set())
        else:
            # Only a page that could not be read leads there. It never came up, which is a miss by the letter; holding it back is as
            # good: nobody has seen the list that it stands on.
            sights[path] = frozenset({Sight.MISSING, Sight.UNKNOWN} if path in behind else {Sight.MISSING})
    return Look(sights, _concludes(weather, [answers[path] for path in surely], [answers[path] for path in perhaps], start))


def _reach(site: Mapping[str, Node], seeds: list[str], max_depth: int, answers: Callable[[str], bool]) -> set[str]:
    """Addresses that come up when exactly the pages that `answers` tells are read: by links and redirects, breadth first."""
    level, found = list(dict.fromkeys(seeds)), set(seeds)
    for depth in range(max_depth + 1):
        following: list[str] = []
        for path in level:  # redirects lengthen the level that they are on
            node = site[path]
            if not answers(path):
                continue
            if node.kind == Kind.MOVED and node.target not in found:
                found.add(node.target)
                level.append(node.target)
            elif node.kind == Kind.PAGE and depth < max_depth:
                fresh = [link for link in dict.fromkeys(node.links) if link not in found]
                found.update(fresh)
                following += fresh
        level = following
    return found


def _answer(path: str, site: Mapping[str, Node], weather: Weather) -> frozenset[Sight]:
    """What a run that comes to the address may learn there."""
    node, trouble = site[path], weather.troubled.get(path)
    if trouble == Trouble.SURELY:
        return frozenset({Sight.UNKNOWN})
    own = {Sight.READ} if node.kind == Kind.PAGE else {Sight.MISSING}
    if node.kind == Kind.MOVED:
        way = [path]
        while site[way[-1]].kind == Kind.MOVED:
            way.append(site[way[-1]].target)
        if weather.stopped or any(step in weather.troubled for step in way):
            own = {Sight.MOVED, Sight.MISSING, Sight.UNKNOWN}  # what it moved to was perhaps not read: nothing took its place yet
        elif site[way[-1]].kind == Kind.PAGE:
            own = {Sight.MOVED}
    return frozenset(own | ({Sight.UNKNOWN} if trouble else set()))


def _concludes(weather: Weather, surely: list[frozenset[Sight]], perhaps: list[frozenset[Sight]], start: str) -> frozenset[bool]:
    if weather.stopped or not weather.sitemap_whole or not any(seen != {Sight.UNKNOWN} for seen in perhaps):
        return frozenset({False})
    if start in weather.troubled or not any(Sight.UNKNOWN not in seen for seen in surely):
        # "An unreachable seed" reached nothing, yet pages of the sitemap were read: both readings of the rule are safe ones. Or all
        # that was definite hangs on whether a second attempt was made.
        return frozenset({True, False})
    return frozenset({True})


def after_run(belief: Belief, sights: Iterable[Sight], concludes: Iterable[bool], *, text: Text | None, needed: int) -> Belief:
    """The states in which a run leaves a document; `needed` concluding runs without it remove it."""
    return frozenset(_step(state, sight, conclusion, text, needed) for state in belief for sight in sights for conclusion in concludes)


def _step(state: State, sight: Sight, concludes: bool, text: Text | None, needed: int) -> State:
    if sight == Sight.READ:
        return State(text)
    if sight == Sight.UNKNOWN or not concludes or state.text is None:
        return state
    if sight == Sight.MOVED or state.misses + 1 >= needed:
        return State(None)
    return replace(state, misses=state.misses + 1)


def after_purge(belief: Belief) -> Belief:
    """What answers goes on answering. Its misses are forgotten with the rest, or count on: a page gets its whole grace either way."""
    return belief | frozenset(replace(state, misses=0) for state in belief)


def may_go(before: Belief, after: Belief) -> bool:
    return any(state.text for state in before) and any(state.text is None for state in after)


def must_go(before: Belief, after: Belief) -> bool:
    return all(state.text for state in before) and all(state.text is None for state in after)


def if_braked(before: Belief, after: Belief) -> Belief:
    """The run would have removed too much: what it would have removed stays as it was."""
    return frozenset(state for state in after if state.text) | before if may_go(before, after) else after


def if_rejected(belief: Belief) -> Belief:
    """An editor keeps what a braked run planned to remove: its misses are counted anew."""
    return frozenset(replace(state, misses=0) for state in belief)


def brake(going: tuple[int, int], living: tuple[int, int], *, share: float, above: int = 10) -> frozenset[bool]:
    """Whether the run must or may wait for a person, from the least and the most that it removes and has."""
    must = going[0] > above and going[0] > share * living[1]
    may = going[1] > above and going[1] > share * living[0]
    return frozenset({True} if must else {True, False} if may else {False})
