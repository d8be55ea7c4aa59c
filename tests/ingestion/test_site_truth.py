"""The model that site histories are judged by, against a plain crawler with the real rules of deletion: no fleet, no database.

If the two disagree, either the rules are broken or the model is; and a careless crawler must not get past the model.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.reconcile import Action, Coverage, Known, Reconciliation, Seen, Settings, reconcile
from tests.benchmarks.soak.site_life import START, Life
from tests.benchmarks.soak.site_truth import (
    NOTHING,
    Belief,
    Kind,
    Listing,
    Node,
    State,
    Trouble,
    Weather,
    after_purge,
    after_run,
    if_braked,
    look_at,
)
from tests.benchmarks.soak.texts import Author, Text

DEPTH = 3


@dataclass
class Stored:
    """A document of the plain crawler."""

    id: UUID
    text: Text | None = None
    misses: int = 0


def weather_of(chance: random.Random, life: Life) -> Weather:
    pages = sorted(path for path, node in life.nodes.items() if node.kind == Kind.PAGE)
    match chance.randrange(8):
        case 0:
            return Weather(deaf=True)
        case 1 | 2:
            troubled = chance.sample(pages, min(len(pages), chance.randint(1, 4)))
            return Weather(troubled={path: chance.choice(list(Trouble)) for path in troubled})
        case 3:
            return Weather(absent=frozenset({START}))
        case 4:
            return Weather(listing=chance.choice([Listing.PERHAPS, Listing.NONE]), sitemap_whole=False)
        case 5:
            return Weather(listing=Listing.NONE)
        case 6:
            return Weather(stopped=True)
    return Weather()


def crawl(nodes: dict[str, Node], weather: Weather, chance: random.Random) -> dict[str, tuple[Seen, Text | None]]:
    """One way in which a run may go; chance decides where the weather leaves it open."""
    if weather.deaf:
        return {START: (Seen.UNKNOWN, None)}
    listed = [path for path, node in nodes.items() if node.listed]
    if weather.listing != Listing.ALL:
        listed = [path for path in listed if weather.listing == Listing.PERHAPS and chance.random() < 0.5]
    level, known, seen, moved = list(dict.fromkeys([START, *listed])), {START, *listed}, {}, {}
    for _ in range(DEPTH + 1):
        following = []
        for path in level:
            if weather.stopped and chance.random() < 0.3:
                continue
            node, trouble = nodes[path], weather.troubled.get(path)
            if trouble == Trouble.SURELY or (trouble and chance.random() < 0.5):
                seen[path] = (Seen.UNKNOWN, None)
            elif node.kind == Kind.GONE or path in weather.absent:
                seen[path] = (Seen.GONE, None)
            elif node.kind == Kind.MOVED:
                moved[path] = node.target
                if node.target not in known:
                    known.add(node.target)
                    level.append(node.target)
            else:
                seen[path] = (Seen.PRESENT, node.text)
                fresh = [link for link in dict.fromkeys(node.links) if link not in known]
                known.update(fresh)
                following += fresh
        level = following
    for path, target in moved.items():
        while target in moved:
            target = moved[target]
        arrived = seen.get(target, (Seen.ABSENT, None))[0]
        seen[path] = ({Seen.PRESENT: Seen.MOVED, Seen.UNKNOWN: Seen.UNKNOWN}.get(arrived, Seen.ABSENT), None)
    return seen


def run(
    store: dict[str, Stored], life: Life, weather: Weather, chance: random.Random, rules: Settings, careless: Callable[[Coverage], Coverage]
) -> Reconciliation:
    """Crawl, publish what was read, conclude."""
    seen = crawl(life.nodes, weather, chance)
    for path, (_, text) in seen.items():
        document = store.setdefault(path, Stored(UUID(int=len(store))))
        if text:
            document.text = text
    states = [state for state, _ in seen.values()]
    coverage = Coverage(not weather.stopped, weather.sitemap_whole, usable=states.count(Seen.PRESENT), definitive=states.count(Seen.GONE))
    known = [Known(one.id, one.misses, one.text is None, seen.get(path, (Seen.ABSENT, None))[0]) for path, one in store.items()]
    decided = reconcile(known, coverage=careless(coverage), settings=rules)
    for document, decision in zip(store.values(), decided.decisions, strict=True):
        match decision.action:
            case Action.RESET:
                document.misses = 0
            case Action.MISS:
                document.misses += 1
            case Action.REMOVE:
                document.text, document.misses = None, 0
    return decided


def violations(chance: random.Random, runs: int, careless: Callable[[Coverage], Coverage] = lambda coverage: coverage) -> list[str]:
    life = Life(Author(random.Random(0)), chance)
    life.begin(9)
    rules = Settings(chance.choice([1, 2, 3]), max_deletion_share=1.0)
    store: dict[str, Stored] = {}
    beliefs: dict[str, Belief] = {}
    found = []
    for _ in range(runs):
        for _ in range(chance.randint(0, 2)):
            life.live()
        if chance.random() < 0.1:
            beliefs = {path: after_purge(belief) for path, belief in beliefs.items()}
        weather = weather_of(chance, life)
        decided = run(store, life, weather, chance, rules, careless)
        look = look_at(life.nodes, weather, start=START, max_depth=DEPTH)
        for path, node in life.nodes.items():
            before = beliefs.get(path, NOTHING)
            after = after_run(before, look.sights[path], look.concludes, text=node.text, needed=rules.tombstone_after_missed_runs)
            after = if_braked(before, after) if decided.braked else after
            text = store[path].text if path in store else None
            beliefs[path] = frozenset(state for state in after if state.text == text)
            if not beliefs[path]:
                found.append(f"{path} {weather}: is {text and text.serial}, may be {after}")
                beliefs[path] = frozenset({State(text)})
    return found


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 6))
def test_the_rules_of_deletion_and_the_model_agree(chance, runs):
    assert violations(chance, runs) == []


@pytest.mark.parametrize(
    ("what", "careless"),
    [
        ("concludes from a run that was stopped", lambda coverage: replace(coverage, completed=True)),
        ("concludes from half a sitemap", lambda coverage: replace(coverage, sitemaps_whole=True)),
        ("concludes from a site that said nothing", lambda coverage: replace(coverage, usable=1, completed=True)),
        ("never concludes", lambda coverage: replace(coverage, completed=False)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_careless_crawler_is_found_out(what, careless):
    assert any(violations(random.Random(seed), 8, careless) for seed in range(30))
