"""When absence counts as deletion. Pure: every rule of removal is here, and is a row of a table in the tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Seen(StrEnum):
    """What a run learned about a document."""

    PRESENT = "present"  # read, or known to be unchanged
    GONE = "gone"  # the source says that it is gone (404, 410, another definitive answer)
    UNKNOWN = "unknown"  # looked at and learned nothing (401, 403, 408, 429, 5xx, transport, unparsable)
    ABSENT = "absent"  # never came up


class Action(StrEnum):
    KEEP = "keep"  # nothing changes
    RESET = "reset"  # it is there: its count of misses starts anew
    MISS = "miss"  # one more complete run without it
    REMOVE = "remove"  # its chunks go, then its row says so


@dataclass(frozen=True, slots=True)
class Known:
    """A document as it stood before the run."""

    id: UUID
    missed_runs: int
    removed: bool
    seen: Seen


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the source the run saw. Only a run that completed, read every sitemap whole and learned something concludes anything."""

    completed: bool
    sitemaps_whole: bool = True
    usable: int = 0  # documents read or unchanged
    definitive: int = 0  # failures that answered the question

    @property
    def concludes(self) -> bool:
        return self.completed and self.sitemaps_whole and (self.usable > 0 or self.definitive > 0)


@dataclass(frozen=True, slots=True)
class Settings:
    tombstone_after_missed_runs: int = 2
    max_deletion_share: float = 0.5
    brake_above: int = 10


@dataclass(frozen=True, slots=True)
class Decision:
    document: UUID
    action: Action


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """`braked`: more would go than may go unasked, so nothing goes; `removals` are what an editor confirms or rejects."""

    decisions: tuple[Decision, ...]
    removals: tuple[UUID, ...]
    braked: bool
    concludes: bool


def reconcile(documents: Sequence[Known], *, coverage: Coverage, settings: Settings) -> Reconciliation:
    """What a finished run means for every document that its source had."""
    decisions = [Decision(document.id, _action(document, coverage, settings)) for document in documents]
    removals = [decision.document for decision in decisions if decision.action == Action.REMOVE]
    living = sum(not document.removed for document in documents)
    braked = len(removals) > settings.brake_above and len(removals) > settings.max_deletion_share * living
    if braked:
        decisions = [Decision(d.document, Action.KEEP) if d.action == Action.REMOVE else d for d in decisions]
    return Reconciliation(tuple(decisions), tuple(removals), braked, coverage.concludes)


def _action(document: Known, coverage: Coverage, settings: Settings) -> Action:
    if document.removed or document.seen == Seen.UNKNOWN:
        return Action.KEEP
    if document.seen == Seen.PRESENT:
        return Action.RESET if document.missed_runs else Action.KEEP
    if not coverage.concludes:
        return Action.KEEP
    if document.missed_runs + 1 >= settings.tombstone_after_missed_runs:
        return Action.REMOVE
    return Action.MISS
