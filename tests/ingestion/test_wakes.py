"""Fair shares are pure; what is under way is counted beside the queue."""

from uuid import uuid4

import pytest

from config.redis import redis_client
from ingestion import wakes


def shares(slots: int, *organizations: int) -> list[list[int]]:
    """Shares of the runs of organizations that have so many of them."""
    runs = {uuid4(): [uuid4() for _ in range(count)] for count in organizations}
    found = wakes.fair_shares(slots, runs)
    return [[found[run] for run in members] for members in runs.values()]


@pytest.mark.parametrize(
    ("slots", "organizations", "expected"),
    [
        (8, (1,), [[8]]),
        (8, (1, 1), [[4], [4]]),
        (8, (4, 1), [[1, 1, 1, 1], [4]]),
        (8, (3,), [[3, 3, 2]]),
        (1, (1, 1, 1), [[1], [1], [1]]),  # nobody starves, the queue's order decides
        (0, (1,), [[1]]),  # a message may wait for the first worker
    ],
)
def test_fair_shares(slots, organizations, expected):
    assert shares(slots, *organizations) == expected


@pytest.mark.django_db
def test_a_run_has_no_more_messages_under_way_than_its_share(db):
    run = uuid4()
    assert wakes.wake(run, "extract", rows=100, share=3) == 3
    assert wakes.wake(run, "extract", rows=100, share=3) == 0
    assert wakes.wake(run, "extract", rows=100, share=5) == 2


@pytest.mark.django_db
def test_few_rows_wake_few_workers(db):
    assert wakes.wake(uuid4(), "extract", rows=1, share=8) == 1
    assert wakes.wake(uuid4(), "extract", rows=9, share=8) == 3


@pytest.mark.django_db
def test_a_flushed_redis_forgets_messages_and_their_count_together(db):
    run = uuid4()
    wakes.wake(run, "embed")
    redis_client().flushdb()
    assert wakes.wake(run, "embed") == 1


@pytest.mark.django_db
def test_a_broker_out_of_reach_is_waited_for(settings, db):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert wakes.wake(uuid4(), "embed") == 0
