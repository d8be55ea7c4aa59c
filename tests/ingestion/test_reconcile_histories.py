"""Random histories of runs against what may never happen, whatever the order of luck and failure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from ingestion.reconcile import Action, Coverage, Decision, Known, Reconciliation, Seen, Settings, reconcile

SEEN = tuple(Seen)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run saw of each document, and how much of the source it saw."""

    seen: tuple[Seen, ...]
    completed: bool
    sitemaps_whole: bool
    answers_everything: bool

    @property
    def coverage(self) -> Coverage:
        present, gone = self.seen.count(Seen.PRESENT), self.seen.count(Seen.GONE)
        return Coverage(self.completed, self.sitemaps_whole, self.answers_everything, usable=present, definitive=gone)

    @property
    def may_conclude(self) -> bool:
        """By the words of the rules: it completed, read every sitemap whole and learned something definite of a site that means it."""
        whole = self.completed and self.sitemaps_whole and not self.answers_everything
        return whole and any(seen in (Seen.PRESENT, Seen.GONE) for seen in self.seen)


@dataclass(frozen=True, slots=True)
class Moment:
    """A run, the documents as it found them, what was decided, and what the test alone counts: how many runs, this one included,
    may say that each document is missing since it was last there."""

    settings: Settings
    run: Run
    known: list[Known]
    decided: Reconciliation
    misses: tuple[int, ...]

    @property
    def actions(self) -> list[tuple[Known, Action, int]]:
        return list(zip(self.known, (decision.action for decision in self.decided.decisions), self.misses, strict=True))

    @property
    def removed(self) -> set[UUID]:
        return {document.id for document, action, _ in self.actions if action == Action.REMOVE}


@st.composite
def histories(draw: st.DrawFn, *, most: int = 30) -> tuple[Settings, list[Run]]:
    number = draw(st.integers(1, most))
    settings = Settings(draw(st.integers(1, 4)), max_deletion_share=draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])))
    # Most documents of a real source share a fate: one mood of the site, and a few that differ.
    mood = st.sampled_from([*SEEN, Seen.PRESENT, Seen.PRESENT, Seen.ABSENT])
    others = st.lists(st.tuples(st.integers(0, number - 1), st.sampled_from(SEEN)), max_size=5)
    how = st.sampled_from([(True, True, False)] * 5 + [(False, True, False), (True, False, False), (True, True, True)])
    runs = draw(st.lists(st.tuples(mood, others, how), min_size=1, max_size=8))
    return settings, [Run(tuple(dict(others).get(index, mood) for index in range(number)), *how) for mood, others, how in runs]


def apply(known: list[Known], decisions: Iterable[Decision]) -> list[Known]:
    """What the finish stage writes."""
    actions = {decision.document: decision.action for decision in decisions}
    changes = {
        Action.KEEP: lambda document: document,
        Action.RESET: lambda document: replace(document, missed_runs=0),
        Action.MISS: lambda document: replace(document, missed_runs=document.missed_runs + 1),
        Action.REMOVE: lambda document: replace(document, removed=True),
    }
    return [changes[actions[document.id]](document) for document in known]


def live(settings: Settings, runs: list[Run]) -> Iterable[Moment]:
    known = [Known(UUID(int=index), 0, False, Seen.ABSENT) for index in range(len(runs[0].seen))]
    misses = [0] * len(known)
    for run in runs:
        known = [replace(document, seen=seen) for document, seen in zip(known, run.seen, strict=True)]
        # A removed document that is read again is published anew before a run is concluded.
        known = [replace(d, removed=False, missed_runs=0) if d.removed and d.seen == Seen.PRESENT else d for d in known]
        for index, seen in enumerate(run.seen):
            if seen == Seen.PRESENT:
                misses[index] = 0
            elif run.may_conclude and seen in (Seen.GONE, Seen.ABSENT):
                misses[index] += 1
        decided = reconcile(known, coverage=run.coverage, settings=settings)
        yield Moment(settings, run, known, decided, tuple(misses))
        known = apply(known, decided.decisions)


def nothing_goes_without_enough_runs_that_may_count_it_missing(now: Moment) -> None:
    """Only what moved for good needs none: what took its place answers."""
    needed = now.settings.tombstone_after_missed_runs
    removed = [(document, misses) for document, action, misses in now.actions if action == Action.REMOVE]
    assert all(misses >= needed or document.seen == Seen.MOVED for document, misses in removed)


def what_was_missed_often_enough_goes_in_that_very_run_unless_the_brake_holds(now: Moment) -> None:
    due = {
        document.id
        for document, _, misses in now.actions
        if now.run.may_conclude
        and not document.removed
        and (
            document.seen == Seen.MOVED
            or (document.seen in (Seen.GONE, Seen.ABSENT) and misses >= now.settings.tombstone_after_missed_runs)
        )
    }
    assert set(now.decided.removals) == due
    assert now.removed == (set() if now.decided.braked else due)


def a_run_that_does_not_conclude_removes_and_counts_nothing(now: Moment) -> None:
    if not now.run.may_conclude:
        assert {action for _, action, _ in now.actions} <= {Action.KEEP, Action.RESET}
        assert (now.decided.removals, now.decided.braked, now.decided.concludes) == ((), False, False)


def what_could_not_be_read_is_neither_missed_nor_found(now: Moment) -> None:
    assert {action for document, action, _ in now.actions if document.seen == Seen.UNKNOWN} <= {Action.KEEP}


def what_is_there_has_no_misses_afterwards(now: Moment) -> None:
    for before, after in zip(now.known, apply(now.known, now.decided.decisions), strict=True):
        if before.seen == Seen.PRESENT:
            assert (after.missed_runs, after.removed) == (0, False)


def never_more_than_the_share_goes_at_once_unasked(now: Moment) -> None:
    living = sum(not document.removed for document in now.known)
    most = max(now.settings.brake_above, now.settings.max_deletion_share * living)
    assert len(now.removed) <= most
    assert now.decided.braked is (len(now.decided.removals) > most)


def a_braked_removal_is_asked_for_again(now: Moment) -> None:
    """By the next concluding run that still misses the documents."""
    if now.decided.braked:
        again = reconcile(apply(now.known, now.decided.decisions), coverage=now.run.coverage, settings=now.settings)
        assert again.braked
        assert set(again.removals) >= set(now.decided.removals)


INVARIANTS = (
    nothing_goes_without_enough_runs_that_may_count_it_missing,
    what_was_missed_often_enough_goes_in_that_very_run_unless_the_brake_holds,
    a_run_that_does_not_conclude_removes_and_counts_nothing,
    what_could_not_be_read_is_neither_missed_nor_found,
    what_is_there_has_no_misses_afterwards,
    never_more_than_the_share_goes_at_once_unasked,
    a_braked_removal_is_asked_for_again,
)


@effort(max_examples=150, deadline=None)
@given(histories())
def test_whatever_happens(history):
    for now in live(*history):
        for invariant in INVARIANTS:
            invariant(now)


@effort(max_examples=30, deadline=None)
@given(histories(most=12), st.randoms(use_true_random=False))
def test_the_order_of_documents_means_nothing(history, chance):
    for now in live(*history):
        shuffled = chance.sample(now.known, len(now.known))
        again = reconcile(shuffled, coverage=now.run.coverage, settings=now.settings)
        assert {(d.document, d.action) for d in again.decisions} == {(d.document, d.action) for d in now.decided.decisions}
        assert [decision.document for decision in again.decisions] == [document.id for document in shuffled]
