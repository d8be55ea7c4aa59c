"""A little of each soak; what takes long even so is a soak itself."""

import random

import pytest

from tests.benchmarks.soak import change, extraction, files, fuzz, histories, kills, races, site_histories, size, tenants
from tests.benchmarks.soak.ground import Bounds, Figures
from tests.journeys.conftest import SEED

pytestmark = pytest.mark.journey


@pytest.mark.soak
def test_a_round_of_kills(run_slice):
    figures = run_slice(kills, rounds=1, operations=5, most_strikes=3)
    assert figures.notes["kills"]
    assert figures.notes["paid"]


def test_a_short_history(run_slice):
    assert run_slice(histories, rounds=1, steps=14).notes["steps"] >= 5


def test_a_site_for_a_few_runs(run_slice):
    assert run_slice(site_histories, rounds=1, seconds=60, runs=2, pages=6).notes["runs"] == 2


def test_a_short_race(run_slice):
    statuses = run_slice(races, rounds=1, threads=6, round_seconds=4).notes["statuses"]
    assert statuses.get("run 202")


def test_a_little_of_the_api_fuzz(run_slice):
    assert run_slice(fuzz, rounds=1, share=0.6).notes["requests"] > 50


def test_some_damaged_files(run_slice):
    assert run_slice(files, rounds=1, files=12).notes["outcomes"]


def test_some_damaged_files_without_an_installation():
    figures = Figures.of("extraction", *extraction.KEYS)
    extraction.soak(None, figures, Bounds(1, 1), random.Random(SEED), files=150)
    assert figures.is_clean, figures.told
    assert figures.notes["outcomes"]["read"] > 10


def test_somewhat_large_things(run_slice):
    figures = run_slice(size, rounds=4, megabytes=3, chunks=400, small_files=60, deleted_chunks=200, await_rows=False)
    assert figures.notes["peak_rss_mb"]["web"]


@pytest.mark.soak
def test_two_tenants_and_each_other_s_ids(run_slice):
    assert run_slice(tenants, rounds=1).notes["operations"] > 40


def test_a_change_of_model_under_questions(run_slice):
    figures = run_slice(change, rounds=1, chunks=600, calm_seconds=2)
    assert figures.notes["texts"] > 500
    assert len(figures.notes["asked"]) == 2, "both models have answered"
