"""A site lives and is crawled, run after run, while things go wrong; after each run what answers is what may answer.

A round is one site and one knowledge base over twelve runs. Before a run the site changes, or its source is purged, renamed or has its
depth changed; during it pages or the whole site fail, the sitemap is cut, a limit ends it, somebody cancels it, or its workers die.
"""

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from tests.benchmarks.soak.ground import Bounds, Figures, Ground, say
from tests.benchmarks.soak.site_answers import Answers, path_of
from tests.benchmarks.soak.site_hands import FleetHands, Hands, configuration
from tests.benchmarks.soak.site_life import START, Life
from tests.benchmarks.soak.site_truth import (
    NOTHING,
    Kind,
    Sight,
    Weather,
    after_purge,
    after_run,
    brake,
    if_braked,
    if_rejected,
    look_at,
    may_go,
    must_go,
)
from tests.benchmarks.soak.texts import Author
from tests.benchmarks.soak.websites import LOGIN, Website, spoil
from tests.servers.site import Site

KEYS = ("lost", "doubled", "stuck", "wrongly_deleted", "undead", "errors")
RUNS = 12
PAGES = 16
LIMIT = 4
TIMEOUT_SECONDS = 3  # more than a busy machine needs to answer
IN_FLIGHT = 16  # what a crawl that loses its lease on a busy machine may ask for again
KINDS = {
    "clear": 7,
    "pages": 7,
    "start gone": 1,
    "all": 2,
    "away": 1,
    "maintenance": 2,
    "login": 1,
    "robots": 1,
    "cut sitemap": 2,
    "no sitemap": 2,
}
VICTIMS = ("main", "main", "main", "extract", "embed", "beat")


@dataclass
class SiteHistory:
    """One site, one knowledge base, and what happened to them."""

    figures: Figures
    chance: random.Random
    site: Website
    hands: Hands
    answers: Answers = field(init=False)
    trail: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    asked_again: int = 0  # in runs without faults

    def __post_init__(self) -> None:
        self.answers = Answers(self.figures, self.hands.document["name"], free=frozenset({LOGIN}))

    @property
    def entry(self) -> dict[str, Any]:
        return self.hands.document["sources"][0]

    # --- between runs ----------------------------------------------------------------------------------------------------

    def live(self) -> None:
        for _ in range(self.chance.randint(0, 3)):
            self.trail.append(self.site.life.live())
        self.site.serve()
        turn = self.chance.random()
        if turn < 0.3:
            self.trail.append(self.purge() if turn < 0.1 else self.rename() if turn < 0.2 else self.deepen())

    def purge(self) -> str:
        self.hands.purge(reembed=self.chance.random() < 0.3)
        self.answers.beliefs = {path: after_purge(belief) for path, belief in self.answers.beliefs.items()}
        return "purge"

    def rename(self) -> str:
        entry = self.entry | {"name": f"site {uuid4().hex[:6]}"}
        self.hands.publish(self.hands.document | {"name": f"renamed {uuid4().hex[:8]}", "sources": [entry]})
        return "rename"

    def deepen(self) -> str:
        depth = self.chance.choice((1, 2, 3, 3))
        self.set_web(max_depth=depth)
        return f"depth {depth}"

    def set_web(self, **web: Any) -> None:
        """Another version, with these fields of the source's web block."""
        self.hands.publish(self.hands.document | {"sources": [self.entry | {"web": self.entry["web"] | web}]})

    # --- a run -----------------------------------------------------------------------------------------------------------

    def run(self, kind: str = "", *, ends: str = "", crash: Sequence[str] = ()) -> None:
        """`ends`: "limit" or "cancel", before everything was seen; `crash`: members of the fleet that are killed in the middle."""
        known, started = len(self.figures.told), time.monotonic()
        kind = kind or self.chance.choices(list(KINDS), list(KINDS.values()))[0]
        said, weather = spoil(self.site, self.chance, kind)
        if ends == "limit":
            self.set_web(max_pages=LIMIT)
        self.site.server.forget()
        asked = self.chance.randint(1, max(2, len(self.site.life.nodes)))
        state = self.hands.run(begun=lambda: len(self.site.server.log) >= asked, cancel=ends == "cancel", crash=crash)
        self.site.server.clear_faults()
        self.site.server.start()
        self.kinds.update([kind, *([ends] if ends else []), *(["crash"] if crash else [])])
        self.trail.append(f"RUN {', '.join(filter(None, (said, ends, *(f'kill {name}' for name in crash))))}")
        if state is None:
            self.figures.count("stuck", f"a run of {self.answers.where} does not end")
        else:
            self.trail[-1] += f" -> {state['status']} {state['stop_reason'] or ''}"
            self._conclude(state, weather, ends=ends, calm=kind == "clear" and not (ends or crash))
        if ends == "limit":
            self.set_web(max_pages=200)
        say(f"  {self.trail[-1]} in {time.monotonic() - started:.0f} s")
        if len(self.figures.told) > known:
            say(f"  history of {self.answers.where}: {' > '.join(self.trail[-14:])}")

    # --- what it means ---------------------------------------------------------------------------------------------------

    def _conclude(self, state: Mapping[str, Any], weather: Weather, *, ends: str, calm: bool) -> None:
        nodes, settings = self.site.life.nodes, self.entry["settings"]
        stopped = state["stop_reason"] != "completed"
        look = look_at(nodes, replace(weather, stopped=stopped), start=START, max_depth=self.entry["web"]["max_depth"])
        before = {path: self.answers.of(path) for path in nodes}
        needed = settings["tombstone_after_missed_runs"]
        after = {
            path: after_run(before[path], look.sights[path], look.concludes, text=node.text, needed=needed) for path, node in nodes.items()
        }
        pages = sum(look.sights[path] == {Sight.READ} for path, node in nodes.items() if node.kind == Kind.PAGE)
        self._check_state(state, weather, ends=ends, pages=pages)
        going = {path: must_go(before[path], after[path]) for path in nodes if may_go(before[path], after[path])}
        braked = self._check_brake(state, going, after, settings["max_deletion_share"])
        self.answers.beliefs = {path: if_braked(before[path], after[path]) if braked else after[path] for path in nodes}
        if calm:
            self._check_requests()
        self.answers.observe(self.hands.look())
        if braked:
            self._answer_brake(state, going)
        self.hands.check(self.answers.answering, self.answers.gone, self.chance)

    def _check_state(self, state: Mapping[str, Any], weather: Weather, *, ends: str, pages: int) -> None:
        """Statuses and stop reasons that fit what was done."""
        good = {"succeeded", "partial", "needs_confirmation"} | (
            {"failed"} if weather.deaf or START in {*weather.troubled, *weather.absent} else set()
        )
        reasons = {"completed"}
        if ends == "cancel":
            good, reasons = good | {"cancelled"}, {"completed", "cancelled"}
        elif ends == "limit":
            reasons = {"page_limit"} if pages > LIMIT else {"page_limit", "completed"}
        fits = state["status"] in good and (state["stop_reason"] in reasons or state["status"] == "failed")
        what = f"the run {state['id']} ended {state['status']} {state['stop_reason']}: {state['error']}"
        self.figures.count("errors", what, not fits or "abandoned" in (state["error"] or ""))

    def _check_brake(self, state: Mapping[str, Any], going: dict[str, bool], after: dict[str, Any], share: float) -> bool:
        least, most = sum(going.values()), len(going)
        answering = len(self.answers.answering)
        new = sum(any(state.text for state in after[path]) for path in after if path not in self.answers.answering)
        may = brake((least, most), (answering, answering + new + 1), share=share)  # perhaps the login page too
        braked = state["status"] == "needs_confirmation"
        what = f"{least} to {most} of {answering} documents would go, the run {state['id']} ended {state['status']}"
        self.figures.count("wrongly_deleted", what, may == {True} and not braked)
        self.figures.count("undead", what, may == {False} and braked)
        return braked

    def _answer_brake(self, state: Mapping[str, Any], going: dict[str, bool]) -> None:
        """An editor confirms or rejects what the run planned to remove."""
        confirmed = self.chance.random() < 0.5
        self.hands.answer_brake(state["id"], confirm=confirmed)
        self.trail.append("confirm" if confirmed else "reject")
        for path, surely in going.items():
            belief = self.answers.of(path)
            answered = NOTHING if confirmed else if_rejected(belief)
            self.answers.beliefs[path] = answered if surely else belief | answered
        self.answers.observe(self.hands.look())

    def _check_requests(self) -> None:
        """Nothing is asked for again in a run, whatever names the site gives it."""
        asked = Counter(path_of(request.target) for request in self.site.server.log)
        again = {path: number for path, number in asked.items() if number > 1}
        self.asked_again += sum(again.values()) - len(again)
        self.figures.count("doubled", f"asked for again in one run: {again}", len(again) > IN_FLIGHT or any(n > 2 for n in again.values()))


def soak(ground: Ground, figures: Figures, bounds: Bounds, chance: random.Random, *, runs: int = RUNS, pages: int = PAGES) -> None:
    model = ground.register_model()
    author = Author(chance)
    kinds: Counter[str] = Counter()
    asked_again = 0
    while bounds.allow(figures.rounds):
        say(f"site_histories: round {figures.rounds}")
        with Site() as server:
            site = Website(server, Life(author, chance), chance)
            site.life.begin(pages)
            site.serve()
            needed = chance.choice((1, 2, 2, 3))
            document = configuration(server.url(START), timeout=TIMEOUT_SECONDS, tombstone_after_missed_runs=needed)
            history = SiteHistory(figures, chance, site, FleetHands.make(ground, figures, document | {"embedding_model": model}))
            history.run("clear")
            for _ in range(runs - 1):
                if not bounds.allow(figures.rounds):
                    break
                history.live()
                ends = chance.choices(("", "limit", "cancel"), (8, 1, 1))[0]
                crash = chance.sample(VICTIMS, chance.choice((1, 1, 2))) if chance.random() < 0.25 else ()
                history.run(ends=ends, crash=sorted(set(crash)))
            kinds += history.kinds
            asked_again += history.asked_again
        ground.fleet.start()
        figures.rounds += 1
    figures.notes |= {"runs": sum(kinds[kind] for kind in KINDS), "faults": dict(sorted(kinds.items())), "asked_again": asked_again}
