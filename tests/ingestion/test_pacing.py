"""Turns at a host, with a real Valkey, several threads and processes, and without."""

import itertools
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from config.redis import redis_client
from ingestion import pacing

pytestmark = pytest.mark.usefixtures("db")
_numbers = itertools.count()


@pytest.fixture
def origin():
    return f"https://site{next(_numbers)}.test"


@pytest.fixture
def elsewhere(monkeypatch):
    """What a worker on another machine knows of the turns taken here: nothing but Redis."""

    def change():
        monkeypatch.setattr(pacing, "_here", pacing._Here())

    return change


@pytest.fixture
def no_redis(settings, elsewhere):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    elsewhere()


def test_turns_are_a_delay_apart(origin):
    waits = [pacing.reserve(origin, delay=2) for _ in range(3)]
    assert waits == pytest.approx([0, 2, 4], abs=0.3)
    assert pacing.reserve(f"{origin}:8443", delay=2) == 0


def test_another_process_waits_for_the_same_turns(origin, settings):
    program = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'\n"
        "from django.conf import settings; settings.REDIS_URL = sys.argv[1]\n"
        "from ingestion.pacing import reserve\n"
        "print([reserve(sys.argv[2], delay=5) for _ in range(2)])"
    )
    assert pacing.reserve(origin, delay=30) == 0
    command = [sys.executable, "-c", program, settings.REDIS_URL, origin]
    told = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=True)
    first, second = (float(text) for text in told.stdout.strip(" []\n").split(","))
    assert 10 < first <= 30
    assert second == pytest.approx(first + 5, abs=1)


def test_threads_get_turns_of_their_own(origin):
    with ThreadPoolExecutor(8) as pool:
        waits = sorted(pool.map(lambda _: pacing.reserve(origin, delay=1) + time.monotonic(), range(24)))
    gaps = [later - earlier for earlier, later in itertools.pairwise(waits)]
    assert min(gaps) > 0.8
    assert waits[-1] - waits[0] == pytest.approx(23, abs=1)


def test_a_turn_that_is_too_far_away_is_not_taken(origin):
    assert pacing.reserve(origin, delay=10) == 0
    for _ in range(3):
        assert pacing.reserve(origin, delay=10, at_most=1) == pytest.approx(10, abs=0.5)
    assert pacing.reserve(origin, delay=10, at_most=10) == pytest.approx(10, abs=0.5)
    assert pacing.reserve(origin, delay=10) == pytest.approx(20, abs=0.5)


def test_a_host_that_asks_for_a_pause_gets_it_from_everybody(origin, elsewhere):
    pacing.push_back(origin, 20)
    pacing.push_back(origin, 5)
    for _ in range(2):
        assert pacing.paused_for(origin) == pytest.approx(20, abs=0.5)
        assert pacing.reserve(origin, delay=0, at_most=1) == pytest.approx(20, abs=0.5)
        assert pacing.reserve(origin, delay=1, at_most=1) == pytest.approx(20, abs=0.5)
        elsewhere()
    assert pacing.reserve(origin, delay=1) == pytest.approx(20, abs=0.5)
    assert pacing.reserve(origin, delay=1) == pytest.approx(21, abs=0.5)


def test_a_pause_ends(origin):
    pacing.push_back(origin, 0.2)
    time.sleep(0.25)
    assert pacing.paused_for(origin) == 0
    assert pacing.reserve(origin, delay=1) == 0


def test_without_delay_nothing_is_written(origin):
    assert [pacing.reserve(origin, delay=0) for _ in range(3)] == [0, 0, 0]
    assert pacing.paused_for(origin) == 0
    assert redis_client().keys("lectern:pace:*") == []


def test_without_delay_redis_is_not_asked_for_each_request_and_a_pause_is_still_learnt(origin, elsewhere):
    pacing.reserve(origin, delay=0)
    before = redis_client().info("stats")["total_commands_processed"]
    for _ in range(100):
        pacing.reserve(origin, delay=0)
    assert redis_client().info("stats")["total_commands_processed"] - before < 50
    here = pacing._here
    elsewhere()
    pacing.push_back(origin, 20)
    pacing._here = here
    time.sleep(pacing._PAUSE_KNOWN_SECONDS)
    assert pacing.reserve(origin, delay=0) == pytest.approx(19, abs=1)


def test_keys_expire_when_they_say_nothing_any_more(origin):
    pacing.reserve(origin, delay=2)
    assert 0 < redis_client().pttl(f"lectern:pace:{origin}") <= 3100
    pacing.push_back(origin, 60)
    pacing.reserve(origin, delay=2, at_most=1)
    assert 55_000 < redis_client().pttl(f"lectern:pace:{origin}") <= 61_100


def test_an_emptied_redis_makes_nobody_faster(origin):
    for _ in range(3):
        pacing.reserve(origin, delay=2)
    pacing.push_back(origin, 30)
    redis_client().flushdb()
    assert pacing.paused_for(origin) == pytest.approx(30, abs=0.5)
    assert pacing.reserve(origin, delay=2) == pytest.approx(30, abs=0.5)
    assert pacing.reserve(origin, delay=2) == pytest.approx(32, abs=0.5)


def test_without_redis_this_process_keeps_the_pace(origin, no_redis):
    with ThreadPoolExecutor(4) as pool:
        waits = sorted(pool.map(lambda _: pacing.reserve(origin, delay=1) + time.monotonic(), range(8)))
    assert min(later - earlier for earlier, later in itertools.pairwise(waits)) > 0.9
    pacing.push_back(origin, 60)
    assert pacing.paused_for(origin) == pytest.approx(60, abs=0.5)
    assert pacing.reserve(origin, delay=1, at_most=5) == pytest.approx(60, abs=0.5)


def test_a_redis_that_went_away_is_not_asked_every_time(origin, no_redis, settings):
    pacing.reserve(origin, delay=0)
    started = time.monotonic()
    for _ in range(50):
        pacing.reserve(origin, delay=0)
    assert time.monotonic() - started < 0.1


def test_turns_taken_before_redis_went_away_still_stand(origin, settings):
    pacing.reserve(origin, delay=10)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    try:
        assert pacing.reserve(origin, delay=10) == pytest.approx(10, abs=0.5)
    finally:
        pacing._here = pacing._Here()


def test_only_the_near_past_is_remembered(elsewhere, monkeypatch):
    monkeypatch.setattr(pacing, "_MOST_REMEMBERED", 5)
    elsewhere()
    for number in range(20):
        pacing.push_back(f"https://{number}.test", 0.001 if number else 60)
        time.sleep(0.002)
    assert len(pacing._here._turns) <= 7
    assert pacing.paused_for("https://0.test") > 50
