"""A slice of each soak, on one fleet with a database and a Redis number of its own; the services are everybody's and stay up."""

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections

from tests.benchmarks.soak.ground import Bounds, Figures, Ground
from tests.client import Client
from tests.fleet import QUICK, Fleet, free_port
from tests.installation import manage, with_database

DATABASE = "lectern_soak"
SEED = 20


@pytest.fixture(scope="session")
def ground(tmp_path_factory, django_db_blocker) -> Iterator[Ground]:
    with django_db_blocker.unblock():
        owner = connections["owner"]
        with owner.cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{DATABASE}" WITH (FORCE)')
            cursor.execute(f'CREATE DATABASE "{DATABASE}"')
        owner.close()
    environment = {
        **QUICK,
        "DATABASE_URL": with_database(os.environ["DATABASE_URL"], DATABASE),
        "DATABASE_OWNER_URL": with_database(os.environ["DATABASE_OWNER_URL"], DATABASE),
        "REDIS_URL": f"{os.environ['REDIS_URL'].rpartition('/')[0]}/15",
        "LECTERN_HOME": str(tmp_path_factory.mktemp("home")),
        "LECTERN_ALLOWED_PRIVATE_NETWORKS": "127.0.0.1/32:*",
        "LECTERN_EMBED_THREADS": "1",
    }
    fleet = Fleet(environment, tmp_path_factory.mktemp("logs"), free_port())
    manage(environment, "migrate", "--database", "owner", "--verbosity", "0")
    manage(environment, "bootstrap")
    fleet.start()
    try:
        fleet.wait_ready()
        client = Client(fleet.url, manage(environment, "create_api_key", "soak", "--role", "admin"))
        yield Ground(fleet, client, environment)
        client.http.close()
    finally:
        fleet.stop()


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
