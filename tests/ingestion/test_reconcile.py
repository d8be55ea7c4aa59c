"""Every rule about when absence counts as deletion, as a row of a table."""

from uuid import UUID, uuid4

import pytest

from ingestion.reconcile import Action, Coverage, Known, Seen, Settings, reconcile

WHOLE = Coverage(completed=True, usable=5)
STOPPED = Coverage(completed=False, usable=5)
CUT_SITEMAP = Coverage(completed=True, sitemaps_whole=False, usable=5)
LEARNED_NOTHING = Coverage(completed=True, usable=0, definitive=0)
ONLY_A_404 = Coverage(completed=True, usable=0, definitive=1)


def decide(seen: Seen, *, missed: int = 0, removed: bool = False, coverage: Coverage = WHOLE, settings: Settings = Settings()) -> Action:
    document = Known(uuid4(), missed_runs=missed, removed=removed, seen=seen)
    # Nine living neighbours, so that one removal is no mass deletion.
    neighbours = [Known(uuid4(), 0, False, Seen.PRESENT) for _ in range(9)]
    return reconcile([document, *neighbours], coverage=coverage, settings=settings).decisions[0].action


@pytest.mark.parametrize(
    ("rule", "arguments", "expected"),
    [
        ("a document that is there keeps", {"seen": Seen.PRESENT}, Action.KEEP),
        ("a document that is back loses its misses", {"seen": Seen.PRESENT, "missed": 1}, Action.RESET),
        ("the first absence is a miss", {"seen": Seen.ABSENT}, Action.MISS),
        ("the second absence in a row removes", {"seen": Seen.ABSENT, "missed": 1}, Action.REMOVE),
        ("a page that says gone is missed like an absent one", {"seen": Seen.GONE}, Action.MISS),
        ("a page that says gone twice is removed", {"seen": Seen.GONE, "missed": 1}, Action.REMOVE),
        ("a page that could not be read is not gone", {"seen": Seen.UNKNOWN, "missed": 1}, Action.KEEP),
        ("a run that stopped at a limit concludes nothing", {"seen": Seen.ABSENT, "missed": 1, "coverage": STOPPED}, Action.KEEP),
        ("not even for a page that says gone", {"seen": Seen.GONE, "missed": 1, "coverage": STOPPED}, Action.KEEP),
        ("a sitemap that was not read whole concludes nothing", {"seen": Seen.ABSENT, "missed": 1, "coverage": CUT_SITEMAP}, Action.KEEP),
        ("a run that learned nothing concludes nothing", {"seen": Seen.ABSENT, "missed": 1, "coverage": LEARNED_NOTHING}, Action.KEEP),
        ("a definite answer alone is learning", {"seen": Seen.ABSENT, "missed": 1, "coverage": ONLY_A_404}, Action.REMOVE),
        ("a stopped run still resets what it saw", {"seen": Seen.PRESENT, "missed": 1, "coverage": STOPPED}, Action.RESET),
        ("what was removed stays as it is", {"seen": Seen.ABSENT, "missed": 5, "removed": True}, Action.KEEP),
        ("one missed run is enough where the source says so", {"seen": Seen.ABSENT, "settings": Settings(1)}, Action.REMOVE),
        ("three are needed where the source says so", {"seen": Seen.ABSENT, "missed": 1, "settings": Settings(3)}, Action.MISS),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rule(rule, arguments, expected):
    assert decide(**arguments) == expected


def documents(present: int, absent: int, *, removed: int = 0) -> list[Known]:
    return (
        [Known(uuid4(), 0, False, Seen.PRESENT) for _ in range(present)]
        + [Known(uuid4(), 1, False, Seen.ABSENT) for _ in range(absent)]
        + [Known(uuid4(), 9, True, Seen.ABSENT) for _ in range(removed)]
    )


@pytest.mark.parametrize(
    ("present", "absent", "removed", "share", "braked"),
    [
        (10, 11, 0, 0.5, True),  # 11 of 21 is more than half, and more than ten
        (11, 11, 0, 0.5, False),  # exactly half may go
        (1, 10, 0, 0.5, False),  # ten may always go
        (0, 11, 0, 1.0, False),  # everything may go where the source says so
        (100, 11, 0, 0.0, True),
        (10, 11, 30, 0.5, True),  # what is gone already does not dilute the share
    ],
)
def test_a_mass_deletion_waits_for_a_person(present, absent, removed, share, braked):
    known = documents(present, absent, removed=removed)
    result = reconcile(known, coverage=WHOLE, settings=Settings(max_deletion_share=share))
    assert result.braked is braked
    assert len(result.removals) == absent
    removed_now = [decision for decision in result.decisions if decision.action == Action.REMOVE]
    assert len(removed_now) == (0 if braked else absent)


def test_every_document_gets_exactly_one_decision():
    known = documents(3, 3, removed=2)
    decided: list[UUID] = [decision.document for decision in reconcile(known, coverage=WHOLE, settings=Settings()).decisions]
    assert decided == [document.id for document in known]
