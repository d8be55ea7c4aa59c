"""A slice of each soak, on one fleet with a database and a Redis number of its own; the services are everybody's and stay up."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.benchmarks.soak.ground import Bounds, Figures, Ground
from tests.client import Client
from tests.installation import manage, on_tests_services, started_fleet

SEED = 20


@pytest.fixture(scope="session")
def ground(tmp_path_factory) -> Iterator[Ground]:
    environment = on_tests_services("lectern_soak", redis=15, home=tmp_path_factory.mktemp("home"))
    with started_fleet(environment, tmp_path_factory.mktemp("logs")) as fleet:
        client = Client(fleet.url, manage(environment, "create_api_key", "soak", "--role", "admin", "--skip-checks"))
        yield Ground(fleet, client, environment)
        client.http.close()


@pytest.fixture
def run_slice(ground: Ground) -> Callable[..., Figures]:
    """Run so much of a soak; fails with what it found where a figure that must be 0 is not."""

    def run(module: Any, *, rounds: int, seconds: float = 15, seed: int = SEED, **options: Any) -> Figures:
        ground.fleet.start()
        figures = Figures.of(module.__name__.rpartition(".")[2], *module.KEYS)
        module.soak(ground, figures, Bounds(rounds, seconds), random.Random(seed), **options)
        assert figures.is_clean, "\n".join(figures.told[:20])
        assert figures.rounds
        return figures

    return run
