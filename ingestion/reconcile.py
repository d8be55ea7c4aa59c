"""When absence counts as deletion. Pure: every rule of removal is here, and is a row of a table in the tests.

Two steps: `what_was_seen` turns a run's verdicts into what it learned about each document, `reconcile` turns that into actions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Seen(StrEnum):
    """What a run learned about a document."""

    PRESENT = "present"  # read, or known to be unchanged
    MOVED = "moved"  # the source says for good that it is another document, which this run read
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
    """How much of the source the run saw. Only a run that completed, read every sitemap whole and learned something concludes anything.

    A site that answers made-up addresses as it answers its start page (maintenance, a challenge) says nothing about any page.
    """

    completed: bool
    sitemaps_whole: bool = True
    answers_everything: bool = False
    usable: int = 0  # documents read or unchanged
    definitive: int = 0  # failures that answered the question

    @property
    def concludes(self) -> bool:
        learned = self.usable > 0 or self.definitive > 0
        return self.completed and self.sitemaps_whole and not self.answers_everything and learned


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
    if document.seen == Seen.MOVED:
        return Action.REMOVE  # what took its place answers already: keeping both would answer twice
    if document.missed_runs + 1 >= settings.tombstone_after_missed_runs:
        return Action.REMOVE
    return Action.MISS


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict about one key of a source. `target`: the key where a redirect or canonical leads, `permanent`: for good."""

    verdict: str
    reason: str = ""
    target: bytes | None = None
    permanent: bool = False


# The run looked and learned nothing about whether the document exists.
SAYS_NOTHING = frozenset(
    (
        *("unauthorized", "rate_limited", "server_error", "unreachable", "too_large", "address_refused", "robots_unavailable"),
        *("needs_javascript", "empty", "same_for_all", "run_closed", "trap"),
        *("time_limit", "memory_limit", "crashed", "internal", "stored_damaged", "embedding_failed", "worker_died", "quarantined"),
    )
)
# The source answered: this is no document of it.
SAYS_GONE = frozenset(("gone", "soft_404", "not_a_document", "linked_file", "noindex"))
# It was met and not looked at, by the rules of the source's settings or the site's wishes: as if it had not come up.
NOT_LOOKED_AT = frozenset(("out_of_scope", "excluded", "robots", "nofollow", "too_deep", "url_too_long", "bad_url", "not_asked"))
# So many addresses that lead to the same one for the time being are a login or a maintenance page.
SHARED_TARGET = 3
# So many that do so for good may be a mistake of a template: they are missed first, and go when it stands.
SHARED_FOR_GOOD = 2


def what_was_seen(findings: Mapping[bytes, Finding]) -> dict[bytes, Seen]:
    """What each finding says about the document of its key."""
    shared = Counter((f.target, f.permanent) for f in findings.values() if f.reason in ("redirected", "duplicate_of"))
    return {key: _seen(key, finding, findings, shared) for key, finding in findings.items()}


def hidden_from_view(ways: Mapping[bytes, Sequence[bytes]], seen: Mapping[bytes, Seen]) -> set[bytes]:
    """Documents that did not come up, below a page that the run could not read: whether that still links them, nobody knows.

    `ways` maps each document's key to those of the pages that led to it when it was last seen: backwards, up to one that is a document.
    Those between may be redirects or lists that are not indexed, of which nothing else is kept.
    """
    return {key for key in ways if key not in seen and _is_below_unread(key, ways, seen)}


def _is_below_unread(key: bytes, ways: Mapping[bytes, Sequence[bytes]], seen: Mapping[bytes, Seen]) -> bool:
    passed = set()
    way = ways[key]
    while way:
        for page in way:
            if page in seen:
                return seen[page] == Seen.UNKNOWN
        if way[-1] in passed:
            break
        passed.add(way[-1])
        way = ways.get(way[-1], ())
    return False


def _seen(key: bytes, finding: Finding, findings: Mapping[bytes, Finding], shared: Counter[tuple[bytes | None, bool]]) -> Seen:
    if finding.verdict in ("ingested", "unchanged"):
        return Seen.PRESENT
    if finding.verdict == "removed" or finding.reason in SAYS_GONE:
        return Seen.GONE
    if finding.reason in SAYS_NOTHING or finding.reason.endswith("_limit"):
        return Seen.UNKNOWN
    if finding.reason in NOT_LOOKED_AT:
        return Seen.ABSENT
    if finding.reason in ("redirected", "duplicate_of"):
        arrived = _arrives(key, finding, findings)
        is_shared = shared[finding.target, finding.permanent] >= (SHARED_FOR_GOOD if finding.permanent else SHARED_TARGET)
        if finding.permanent:
            return {True: Seen.ABSENT if is_shared else Seen.MOVED, False: Seen.ABSENT, None: Seen.UNKNOWN}[arrived]
        return Seen.ABSENT if arrived is not None and not is_shared else Seen.UNKNOWN
    return Seen.PRESENT  # refused on its content: it is there, and what stood for it has retired


def _arrives(key: bytes, finding: Finding, findings: Mapping[bytes, Finding]) -> bool | None:
    """Whether the way from here ends at a document that the run read; None if the run learned nothing at its end."""
    passed = {key}
    while finding.reason in ("redirected", "duplicate_of"):
        following = findings.get(finding.target or b"")
        if following is None or finding.target in passed:
            return False
        passed.add(finding.target or b"")
        finding = following
    if finding.verdict in ("ingested", "unchanged"):
        return True
    return None if finding.reason in SAYS_NOTHING or finding.reason.endswith("_limit") else False
